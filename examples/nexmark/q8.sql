-- Who opened an auction in the same ten seconds in which they joined?
SELECT p.id, p.name, p.starttime, p.endtime
FROM (
  SELECT id, name, window.start AS starttime, window.end AS endtime
  FROM persons GROUP BY id, name, window(ts, '10 seconds')
) AS p JOIN (
  SELECT seller, window.start AS starttime, window.end AS endtime
  FROM auctions GROUP BY seller, window(ts, '10 seconds')
) AS a
  ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime
