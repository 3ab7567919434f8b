-- Works with releases since 0010

-- After a database was moved to another server, transaction numbers start again. Events up to this one may come from the server
-- before, and have a number in the audit log already. Null: all events come from this server.
alter table audit_cursor add column restored_xid xid8;

-- Set when a worker finds that the database was moved, until the operator has resumed the numbering. This server's transaction
-- numbers may pass those of the other one meanwhile: then nothing else would tell which events have still to be numbered.
alter table audit_cursor add column is_stopped boolean not null default false;
