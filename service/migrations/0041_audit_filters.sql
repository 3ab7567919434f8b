-- Works with releases since 0010

-- For those who look for the events of one caller, change, request or outcome, newest first: an id begins with its time.

-- Every event has an actor, so the index is narrow: a hash of it with its organization takes eight bytes.
create index event_by_actor on event (hashtextextended(organization_id || (header->>'actor'), 0), id);
-- Ids of requests begin with their time: what is new is inserted at the end. Not partial: PostgreSQL takes no statistics from
-- partial indexes, and would think that many events have the same request.
create index event_by_request on event ((header->>'request_id'), id);
-- Only changes have objects, and most calls complete: a call that does has no entry here.
create index event_by_object on event (organization_id, (header->>'object_id'), id) where kind <> 'enforcement';
create index event_by_action on event (organization_id, (header->>'action'), id) where kind <> 'enforcement';
create index event_by_outcome on event (organization_id, (header->>'outcome'), id)
  where header->>'outcome' <> 'completed';
