-- Who in Oregon, Idaho or California opens an auction in category 10 within an hour of joining?
SELECT p.name, p.city, p.state, a.id, a.ts
FROM persons p JOIN auctions a
  ON a.seller = p.id AND a.ts BETWEEN p.ts AND p.ts + INTERVAL 1 HOUR
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
