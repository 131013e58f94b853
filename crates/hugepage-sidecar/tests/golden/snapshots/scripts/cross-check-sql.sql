-- Compares the page sizes that the instance reports for its SGA with those that hugepage-sidecar found.
-- Made by hugepage-sidecar [VERSION], for Oracle Database 12.1 to 23ai on Linux
--
-- Run it as SYS, in the container that has the views: x$ksmssinfo (12.1 and later, undocumented) is visible to SYS only.
-- shmid is that of ipcs -m. Please report a bug if agree is N.
SELECT
  o.shmid,
  o.page_size,
  o.bytes,
  s.landed_in,
  s.page_size AS seen_page_size,
  s.evidence,
  s.age_seconds,
  CASE
    WHEN s.landed_in IS NULL OR s.landed_in = 'unknown' THEN NULL
    -- A segment smaller than a huge page is in base pages.
    WHEN s.landed_in = 'hugetlb' AND o.page_size < s.page_size AND o.bytes >= s.page_size THEN 'N'
    WHEN s.landed_in = 'base' AND o.page_size > s.page_size THEN 'N'
    ELSE 'Y'
  END AS agree
FROM (
  SELECT "SHMID" AS shmid, "PAGESIZE" AS page_size, SUM("SIZE") AS bytes
  FROM sys.x$ksmssinfo
  GROUP BY "SHMID", "PAGESIZE"
) o
LEFT JOIN HUGEPAGE.hugepage_status s ON s.this_instance = 'Y'
ORDER BY o.shmid;
