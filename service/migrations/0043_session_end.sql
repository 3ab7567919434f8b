-- Works with releases since 0010

-- When a session ended, or ends by itself: a day later its row is removed.
create index session_by_end on session (least(ended_at, expires_at));
drop index session_by_expiry;
