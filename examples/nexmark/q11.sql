-- How many bids does someone make before pausing for ten seconds?
SELECT bidder, count(*) AS bid_count, session_window.start AS starttime,
       session_window.end AS endtime
FROM bids GROUP BY bidder, session_window(ts, '10 seconds')
