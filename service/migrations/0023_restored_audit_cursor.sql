-- Works with releases since 0010

-- After a database was moved to another server, transaction numbers start again. Events up to this one may come from the server
-- before, and have a number in the audit log already. Null: all events come from this server.
alter table audit_cursor add column restored_xid xid8;
