# PGXS front of the extension and of its sidecar: make, make install, make installcheck, make clean, make freeze, make
# dist. `make sidecar` and `make install-sidecar` are the sidecar alone. `make image` lays out what is installed as an image
# of the extension's files alone, with its Dockerfile (PostgreSQL 18 and newer).
#
#   PG_CONFIG     the PostgreSQL to build for (default: pg_config of the PATH)
#   bindir        where the sidecar goes (default: where that PostgreSQL's programs are)
#   WITH_SIDECAR  empty: leave it out of make and make install
#   DESTDIR       where a packager wants the files; for make image, where they were installed, or a package was unpacked
#   BUILD_PROFILE cargo's: release, or quick, which is sooner compiled (default: release)
#   BUILD_DIR     what `make` leaves for `make install` (default: build/pgN; the profile is part of the name, if not release)
#   IMAGE_DIR     where make image puts the image's files (default: build/pgN-image)
#   IMAGE_OS      the distribution that the library was compiled on (default: this one's code name)
#   CARGO_PGRX    cargo-pgrx of the version in Cargo.toml (default: cargo pgrx)

EXTNAME = pg_hugepages
EXTVERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

PG_CONFIG ?= pg_config
PG_CONFIG_PATH := $(shell command -v '$(PG_CONFIG)' 2>/dev/null)
$(if $(PG_CONFIG_PATH),,$(error $(PG_CONFIG) not found: install the server's development files, or set PG_CONFIG))
PG_MAJOR := $(shell $(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
PGXS := $(shell $(PG_CONFIG) --pgxs)

CARGO_PGRX ?= cargo pgrx
# Not PROFILE, which PGXS appends to the flags of the C compiler.
BUILD_PROFILE = release
BUILD_DIR ?= build/pg$(PG_MAJOR)$(patsubst %,-%,$(filter-out release,$(BUILD_PROFILE)))

# cargo-pgrx lays the files out below BUILD_DIR as they will be installed below /.
LIBRARY := $(BUILD_DIR)$(shell $(PG_CONFIG) --pkglibdir)/$(EXTNAME).so
BUILT_DATA := $(BUILD_DIR)$(shell $(PG_CONFIG) --sharedir)/extension/$(EXTNAME)
LIBRARY_CRATES := $(addprefix crates/hugepage-,assess benefit kernel server start)
SOURCES := Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml crates/*/build.rs) $(EXTNAME).control $(shell find src $(LIBRARY_CRATES:%=%/src))

# One static program for every host, whatever C library that has. A target is named so that the flags are not those of
# build scripts and macros as well, which can't be static.
WITH_SIDECAR ?= yes
SIDECAR = $(BUILD_DIR)/hugepage-sidecar
SIDECAR_TARGET ?= $(shell scripts/static-target)
SIDECAR_BUILT = $(or $(CARGO_TARGET_DIR),target)/$(SIDECAR_TARGET)/$(BUILD_PROFILE)/hugepage-sidecar

MODULEDIR = extension
# A release's script stays in sql/ for good; the one of the version in the making comes from the build.
DATA = $(filter-out sql/$(EXTNAME)--$(EXTVERSION).sql, $(wildcard sql/$(EXTNAME)--*.sql))
DATA_built = $(BUILT_DATA).control $(BUILT_DATA)--$(EXTVERSION).sql
REGRESS = columns views privileges
EXTRA_CLEAN = build META.json $(EXTNAME)-$(EXTVERSION).zip

all: $(LIBRARY) $(if $(WITH_SIDECAR),sidecar)

include $(PGXS)

$(LIBRARY): $(SOURCES)
	RUSTFLAGS="$(RUSTFLAGS) $$(scripts/compile-flags)" PGRX_PG_CONFIG_PATH='$(PG_CONFIG_PATH)' PGRX_BUILD_FLAGS="$$(scripts/rust-flags)" $(CARGO_PGRX) package \
		--profile '$(BUILD_PROFILE)' --pg-config '$(PG_CONFIG_PATH)' --no-default-features --features pg$(PG_MAJOR) --out-dir '$(BUILD_DIR)'
	touch -c $(LIBRARY) $(DATA_built)

$(DATA_built): $(LIBRARY)

sidecar: $(SIDECAR)
$(SIDECAR): Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml crates/*/build.rs) $(shell find crates/*/src)
	RUSTFLAGS="$(RUSTFLAGS) $$(scripts/compile-flags static)" cargo build --profile '$(BUILD_PROFILE)' --package hugepage-sidecar \
		--target '$(SIDECAR_TARGET)' $$(scripts/rust-flags)
	$(MKDIR_P) '$(BUILD_DIR)'
	$(INSTALL_PROGRAM) '$(SIDECAR_BUILT)' $@

install: install-library $(if $(WITH_SIDECAR),install-sidecar)
install-sidecar: sidecar
	$(MKDIR_P) '$(DESTDIR)$(bindir)'
	$(INSTALL_PROGRAM) $(SIDECAR) '$(DESTDIR)$(bindir)/'

install-library: $(LIBRARY)
	$(MKDIR_P) '$(DESTDIR)$(pkglibdir)'
	$(INSTALL_SHLIB) $(LIBRARY) '$(DESTDIR)$(pkglibdir)/'

uninstall: uninstall-library $(if $(WITH_SIDECAR),uninstall-sidecar)
uninstall-sidecar:
	rm -f '$(DESTDIR)$(bindir)/hugepage-sidecar'

uninstall-library:
	rm -f '$(DESTDIR)$(pkglibdir)/$(EXTNAME).so'

META.json: META.json.in Cargo.toml
	sed 's/@VERSION@/$(EXTVERSION)/g' $< >$@

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
	$(INSTALL_DATA) LICENSE '$(IMAGE_DIR)/licenses/$(EXTNAME)/copyright'
	for file in Dockerfile metadata.hcl; do \
		sed 's/@VERSION@/$(EXTVERSION)/g; s/@MAJOR@/$(PG_MAJOR)/g; s/@OS@/$(IMAGE_OS)/g' packaging/image/$$file.in \
			>'$(IMAGE_DIR)'/$$file || exit; \
	done

# At a release: keeps its script for the versions to come.
freeze: all
	cp $(BUILT_DATA)--$(EXTVERSION).sql sql/

# The source archive for PGXN.
dist: META.json
	git archive --format zip --prefix $(EXTNAME)-$(EXTVERSION)/ --add-file META.json \
		--output $(EXTNAME)-$(EXTVERSION).zip HEAD

.PHONY: sidecar install-library install-sidecar uninstall-library uninstall-sidecar freeze dist image
