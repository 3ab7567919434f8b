-- Works with releases since 0010

-- What each migration demands of the releases that use the database, recorded when it is applied: an older release
-- does not have the file of a newer migration, but can read this.
create table schema_requirement (
  migration text primary key,
  -- The number of the newest migration that the oldest working release has.
  oldest_release text not null check (oldest_release ~ '^[0-9]{4}$')
);
