# PGXS front of the extension and of its sidecar: make, make install, make installcheck, make clean, make dist. `make sidecar`
# and `make install-sidecar` are the sidecar alone. `make image` lays out what is installed as an image of the extension's
# files alone, with its Dockerfile (PostgreSQL 18 and newer).
#
#   PG_CONFIG     the PostgreSQL to build for (default: pg_config of the PATH)
#   SIDECAR_PREFIX  where the sidecar goes: below it bin, and share for its manual pages and completions (default: /usr/local)
#   WITH_SIDECAR  empty: leave it out of make and make install
#   DESTDIR       where a packager wants the files; for make image, where they were installed, or a package was unpacked
#   BUILD_PROFILE cargo's: release, or quick, which is sooner compiled (default: release)
#   BUILD_DIR     what `make` leaves for `make install` (default: build/pgN; the profile is part of the name, if not release)
#   DEBFULLNAME, DEBEMAIL  who answers for it in metadata (default: MAINTAINERS, else the developers)
#   PROJECT_URL   the project's page in the metadata for PGXN, which is also that of its repository (default: none)
#   IMAGE_DIR     where make image puts the image's files (default: build/pgN-image)
#   IMAGE_OS      the distribution that the library was compiled on (default: this one's code name)

EXTNAME = pg_hugepages
EXTVERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

PG_CONFIG ?= pg_config
PG_CONFIG_PATH := $(shell command -v '$(PG_CONFIG)' 2>/dev/null)
$(if $(PG_CONFIG_PATH),,$(error $(PG_CONFIG) not found: install the server's development files, or set PG_CONFIG))
PG_MAJOR := $(shell $(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
PGXS := $(shell $(PG_CONFIG) --pgxs)

# Not PROFILE, which PGXS appends to the flags of the C compiler.
BUILD_PROFILE = release
BUILD_DIR ?= build/pg$(PG_MAJOR)$(patsubst %,-%,$(filter-out release,$(BUILD_PROFILE)))

TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
LIBRARY = $(BUILD_DIR)/$(EXTNAME).so
LIBRARY_CRATES := $(addprefix crates/hugepage-,assess facts kernel server start)
MANIFESTS := Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml crates/*/build.rs crates/*/columns.txt)
SOURCES := $(MANIFESTS) $(shell find src $(LIBRARY_CRATES:%=%/src) -name '*.rs' -o -name '*.toml')

# One static program for every host, whatever C library that has. A target is named so that the flags are not those of
# build scripts and macros as well, which can't be static.
WITH_SIDECAR ?= yes
# It belongs to no PostgreSQL, and where that has its programs, a shell often does not look.
SIDECAR_PREFIX ?= /usr/local
SIDECAR_INSTALLED = '$(DESTDIR)$(SIDECAR_PREFIX)/bin'
SIDECAR_MANUALS = '$(DESTDIR)$(SIDECAR_PREFIX)/share/man/man1'
BASH_COMPLETIONS = '$(DESTDIR)$(SIDECAR_PREFIX)/share/bash-completion/completions'
# Debian's zsh looks into directories of its own below /usr.
ZSH_COMPLETIONS = '$(DESTDIR)$(SIDECAR_PREFIX)/share/zsh/$(if $(filter /usr,$(SIDECAR_PREFIX)),vendor-completions,site-functions)'
FISH_COMPLETIONS = '$(DESTDIR)$(SIDECAR_PREFIX)/share/fish/vendor_completions.d'
SIDECAR = $(BUILD_DIR)/hugepage-sidecar
SIDECAR_TARGET ?= $(shell scripts/static-target)
SIDECAR_BUILT = $(TARGET_DIR)/$(SIDECAR_TARGET)/$(BUILD_PROFILE)/hugepage-sidecar

MODULEDIR = extension
# ./dev sql writes them. The scripts of earlier releases are there to be compared with; nobody installs them.
DATA = sql/$(EXTNAME)--$(EXTVERSION).sql $(wildcard sql/$(EXTNAME)--*--*.sql)
DATA_built = $(BUILD_DIR)/$(EXTNAME).control
REGRESS = columns views privileges
DIST = $(EXTNAME)-$(EXTVERSION)
EXTRA_CLEAN = build META.json $(DIST).zip $(DIST)-vendored.tar.xz

all: library $(if $(WITH_SIDECAR),sidecar)

include $(PGXS)

library: $(LIBRARY)
$(LIBRARY): $(SOURCES)
	RUSTFLAGS="$(RUSTFLAGS) $$(scripts/compile-flags)" PGRX_PG_CONFIG_PATH='$(PG_CONFIG_PATH)' cargo build --locked --lib \
		--package $(EXTNAME) --profile '$(BUILD_PROFILE)' --no-default-features --features pg$(PG_MAJOR) $$(scripts/rust-flags)
	$(MKDIR_P) '$(BUILD_DIR)'
	$(INSTALL_SHLIB) '$(TARGET_DIR)/$(BUILD_PROFILE)/lib$(EXTNAME).so' $@

$(DATA_built): $(EXTNAME).control Cargo.toml
	$(MKDIR_P) '$(BUILD_DIR)'
	sed 's/@VERSION@/$(EXTVERSION)/' $< >$@

sidecar: $(SIDECAR)
$(SIDECAR): $(MANIFESTS) $(shell find crates/*/src)
	RUSTFLAGS="$(RUSTFLAGS) $$(scripts/compile-flags static)" cargo build --locked --profile '$(BUILD_PROFILE)' --package hugepage-sidecar \
		--target '$(SIDECAR_TARGET)' $$(scripts/rust-flags)
	$(MKDIR_P) '$(BUILD_DIR)'
	$(INSTALL_PROGRAM) '$(SIDECAR_BUILT)' $@

install: install-library $(if $(WITH_SIDECAR),install-sidecar)
install-sidecar: sidecar
	$(MKDIR_P) $(SIDECAR_INSTALLED) $(SIDECAR_MANUALS) $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	$(INSTALL_PROGRAM) $(SIDECAR) $(SIDECAR_INSTALLED)
	$(INSTALL_DATA) packaging/man/*.1 $(SIDECAR_MANUALS)
	$(INSTALL_DATA) packaging/completions/hugepage-sidecar.bash $(BASH_COMPLETIONS)/hugepage-sidecar
	$(INSTALL_DATA) packaging/completions/_hugepage-sidecar $(ZSH_COMPLETIONS)
	$(INSTALL_DATA) packaging/completions/hugepage-sidecar.fish $(FISH_COMPLETIONS)

# For packages: the drop-ins of the service, and the files for monitoring systems without what generates them.
SIDECAR_SHARE = $(DESTDIR)/usr/share/hugepage-sidecar
install-sidecar-share:
	$(MKDIR_P) '$(SIDECAR_SHARE)'
	$(INSTALL_DATA) packaging/systemd/*.conf '$(SIDECAR_SHARE)/'
	cp -R monitoring '$(SIDECAR_SHARE)/'
	find '$(SIDECAR_SHARE)' \( -name '*.py' -o -name requirements.txt -o -name '*_test.yaml' \) -delete
	chmod -R u=rwX,go=rX '$(SIDECAR_SHARE)'

# Scripts of another version would stay, and offer what this library does not have.
INSTALLED_SCRIPTS = '$(DESTDIR)$(datadir)/$(MODULEDIR)/$(EXTNAME)'--*.sql
install-library: $(LIBRARY)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_SHLIB) $(LIBRARY) '$(DESTDIR)$(pkglibdir)/'
	rm -f $(INSTALLED_SCRIPTS)

uninstall: uninstall-library $(if $(WITH_SIDECAR),uninstall-sidecar)
uninstall-sidecar:
	rm -f $(SIDECAR_INSTALLED)/hugepage-sidecar $(SIDECAR_MANUALS)/hugepage-sidecar*.1
	rm -f $(BASH_COMPLETIONS)/hugepage-sidecar $(ZSH_COMPLETIONS)/_hugepage-sidecar $(FISH_COMPLETIONS)/hugepage-sidecar.fish

uninstall-library:
	rm -f '$(DESTDIR)$(pkglibdir)/$(EXTNAME).so' $(INSTALLED_SCRIPTS)

RESOURCES = $(if $(PROJECT_URL),"resources": { "homepage": "$(PROJECT_URL)"$(comma) "bugtracker": { "web": "$(PROJECT_URL)/issues" }$(comma) "repository": { "url": "$(PROJECT_URL).git"$(comma) "type": "git" } }$(comma))
comma = ,
# A version with a hyphen is one before a release: 2.0.0-rc1.
STATUS = $(if $(findstring -,$(EXTVERSION)),testing,stable)
MAINTAINER = $(shell DEBFULLNAME='$(DEBFULLNAME)' DEBEMAIL='$(DEBEMAIL)' scripts/maintainer || echo 'the pg_hugepages developers')
META.json: META.json.in Cargo.toml MAINTAINERS
	sed 's/@VERSION@/$(EXTVERSION)/g; s/@STATUS@/$(STATUS)/; s|@MAINTAINER@|$(MAINTAINER)|; s|@RESOURCES@|$(RESOURCES)|' $< >$@

# CloudNativePG's layout: lib and share/extension at the root. Nothing else of the server or the distribution.
IMAGE_DIR ?= build/pg$(PG_MAJOR)-image
IMAGE_OS ?= $(shell . /etc/os-release && echo "$${VERSION_CODENAME:-$$ID}")

image:
	@[ '$(PG_MAJOR)' -ge 18 ] || { echo 'PostgreSQL $(PG_MAJOR) has no extension_control_path: an image needs 18 or newer' >&2; exit 1; }
	rm -rf '$(IMAGE_DIR)'
	$(MKDIR_P) '$(IMAGE_DIR)/lib' '$(IMAGE_DIR)/share/extension' '$(IMAGE_DIR)/licenses/$(EXTNAME)'
	$(INSTALL_SHLIB) '$(DESTDIR)$(pkglibdir)/$(EXTNAME).so' '$(IMAGE_DIR)/lib/'
	$(INSTALL_DATA) '$(DESTDIR)$(datadir)/$(MODULEDIR)/$(EXTNAME).control' '$(DESTDIR)$(datadir)/$(MODULEDIR)/$(EXTNAME)'--*.sql \
		'$(IMAGE_DIR)/share/extension/'
	$(INSTALL_DATA) packaging/licences/$(EXTNAME).copyright '$(IMAGE_DIR)/licenses/$(EXTNAME)/copyright'
	sed 's/@VERSION@/$(EXTVERSION)/g; s/@MAJOR@/$(PG_MAJOR)/g; s/@OS@/$(IMAGE_OS)/g; s|@MAINTAINER@|$(MAINTAINER)|' \
		packaging/image/Dockerfile.in >'$(IMAGE_DIR)/Dockerfile'

# The directory pg-hugepages for postgres-extensions-containers of CloudNativePG, which takes its files from a Debian package.
catalogue:
	$(MKDIR_P) build/pg-hugepages
	for file in Dockerfile README.md metadata.hcl; do \
		sed 's/@VERSION@/$(EXTVERSION)/g; s|@MAINTAINER@|$(MAINTAINER)|' packaging/cloudnative-pg/$$file.in >build/pg-hugepages/$$file || exit; \
	done

# The source archive for PGXN, and one that has the crates as well: it compiles without a network.
dist: META.json
	git archive --format zip --prefix $(DIST)/ --add-file META.json --output $(DIST).zip HEAD
	rm -rf build/dist
	$(MKDIR_P) build/dist/$(DIST)/.cargo
	git archive HEAD | tar -x -C build/dist/$(DIST)
	cp META.json build/dist/$(DIST)/
	$(if $(PROJECT_URL),sed -i '/^\[package\]$$/a repository = "$(PROJECT_URL)"' build/dist/$(DIST)/Cargo.toml)
	cd build/dist/$(DIST) && cargo vendor --locked --versioned-dirs vendor >.cargo/config.toml
	tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$$(git log -1 --format=%ct)" -C build/dist -cJf $(DIST)-vendored.tar.xz $(DIST)

.PHONY: library sidecar install-library install-sidecar install-sidecar-share uninstall-library uninstall-sidecar dist image catalogue
