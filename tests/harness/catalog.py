"""The objects of an extension in the system catalogs, as text that two databases can be compared by."""

from harness.cluster import Cluster
from harness.status import EXTENSION

OBJECTS = """
SELECT pg_describe_object(d.classid, d.objid, 0) AS object,
       CASE d.classid
         WHEN 'pg_proc'::regclass THEN pg_get_functiondef(d.objid)
         WHEN 'pg_class'::regclass THEN pg_get_viewdef(d.objid)
       END AS definition,
       (SELECT array_agg(entry::text ORDER BY entry::text)
        FROM unnest(coalesce(p.proacl, c.relacl)) AS entry) AS privileges,
       (SELECT array_agg(format('%%s %%s', a.attname, format_type(a.atttypid, a.atttypmod)) ORDER BY a.attnum)
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       (SELECT array_agg(s.objsubid || ' ' || s.description ORDER BY s.objsubid)
        FROM pg_description s WHERE (s.classoid, s.objoid) = (d.classid, d.objid)) AS comments
FROM pg_depend d
LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid OR c.oid = t.typrelid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = %s)
ORDER BY 1
"""


def members(server: Cluster, dbname: str) -> dict[str, dict]:
    """Each object of the extension by its description, with definition, columns, privileges and comments."""
    found = {row["object"]: row for row in server.sql(OBJECTS, EXTENSION, dbname=dbname)}
    assert any(name.startswith("view ") for name in found), found
    return found


def sources(server: Cluster, dbname: str) -> list[str]:
    """Each view of the extension, and the call of each function that needs no argument."""
    readable = """
        SELECT d.objid::regproc || '()' AS source
        FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
        WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = %s) AND d.deptype = 'e'
          AND p.pronargs = p.pronargdefaults AND p.prorettype <> 'trigger'::regtype
        UNION ALL
        SELECT d.objid::regclass::text
        FROM pg_depend d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
        WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = %s) AND d.deptype = 'e' AND c.relkind = 'v'
    """
    found = [row["source"] for row in server.sql(readable, EXTENSION, EXTENSION, dbname=dbname)]
    assert found
    return found


def read_everything(server: Cluster, dbname: str) -> None:
    """Select from all of these."""
    for source in sources(server, dbname):
        server.sql(f"SELECT * FROM {source}", dbname=dbname)
