-- Works with releases since 0010

-- The order of an organization's events, as a Merkle tree. The worker reads committed events in the order of (xid, seq) and gives
-- each the next number of its organization; the hash of its record is the next leaf of the organization's tree.

-- How far the events of a shard have been numbered. A worker holds the row's lock while it numbers: there is one at a time.
create table audit_cursor (
  shard smallint primary key check (shard between 0 and 15),
  xid xid8 not null,
  seq bigint not null
);
insert into audit_cursor select shard, '0', 0 from generate_series(0, 15) as shard;

create table audit_head (
  organization_id text collate "C" primary key,
  org_seq bigint not null check (org_seq >= 0), -- the number of the last event, and so the size of the tree
  day date not null, -- of the last entry in audit_log: days never go back
  frontier bytea not null, -- the roots of the complete subtrees, from the largest to the smallest
  signed_size bigint not null default 0, -- the size at the last checkpoint
  signed_at timestamptz(3),
  tiled_size bigint not null default 0 -- how many leaves stand in complete tiles
);
create index audit_head_unsigned on audit_head (signed_at nulls first) where org_seq > signed_size;
create index audit_head_untiled on audit_head (organization_id) where org_seq >= tiled_size + 256;

create table audit_log (
  day date not null, -- of the database's clock when the number was given
  organization_id text collate "C" not null,
  org_seq bigint not null,
  event_day date not null,
  event_id uuid not null,
  leaf bytea not null check (octet_length(leaf) = 32),
  primary key (organization_id, org_seq, day)
) partition by range (day);
create table audit_log_default partition of audit_log default;
create index audit_log_by_event on audit_log (event_id);
-- Of writers whose clock is wrong, or that were away for long. There are few of them.
create index audit_log_other_day on audit_log (organization_id, org_seq) where abs(day - event_day) > 1;

create function make_audit_log_partition(wanted date) returns void language plpgsql as $$
declare
  name text := 'audit_log_' || to_char(wanted, 'YYYYMMDD');
begin
  if to_regclass(name) is not null or exists (select from audit_log_default where day = wanted) then
    return;
  end if;
  execute format('create table %I (like audit_log including defaults including constraints)', name);
  execute format('alter table audit_log attach partition %I for values from (%L) to (%L)', name, wanted, wanted + 1);
end $$;
-- Drops the entries of a day. The first leaves of tiles that are not complete are kept: proofs of later events need them.
create function drop_audit_log_partition(name text) returns void language plpgsql as $$
begin
  execute format($sql$
    insert into audit_tile (organization_id, level, index, hashes)
    select head.organization_id, 0, head.tiled_size / 256,
      coalesce(kept.hashes, '') || string_agg(entry.leaf, ''::bytea order by entry.org_seq)
    from audit_head as head
    left join audit_tile as kept on kept.organization_id = head.organization_id
      and kept.level = 0 and kept.index = head.tiled_size / 256
    cross join lateral ( -- by the key: a day may have millions of entries
      select leaf, org_seq from %I as dropped
      where dropped.organization_id = head.organization_id
        and dropped.org_seq > head.tiled_size + coalesce(octet_length(kept.hashes) / 32, 0)
      order by org_seq limit 256
    ) as entry
    group by head.organization_id, head.tiled_size, kept.hashes
    on conflict (organization_id, level, index) do update set hashes = excluded.hashes
      where audit_tile.root is null -- a worker may have completed it meanwhile
  $sql$, name);
  execute format('alter table audit_log detach partition %I', name);
  execute format('drop table %I', name);
end $$;
select make_audit_log_partition((now() at time zone 'UTC')::date + days) from generate_series(0, 7) as days;

create trigger audit_log_is_immutable before update or delete on audit_log
  for each row execute function refuse_change();

-- 256 hashes that lie side by side: leaves at level 0, the roots of tiles one level below at the others. Proofs need them after
-- the entries of audit_log have been dropped. A tile is complete, except for one of level 0 whose first leaves were dropped.
create table audit_tile (
  organization_id text collate "C" not null,
  level smallint not null,
  index bigint not null,
  hashes bytea not null,
  root bytea, -- of a complete tile
  primary key (organization_id, level, index)
);

-- Signed statements about the size and the root of a tree (docs/specification/audit-log.md).
create table audit_checkpoint (
  organization_id text collate "C" not null,
  size bigint not null check (size > 0),
  root bytea not null check (octet_length(root) = 32),
  frontier bytea not null,
  key_id integer not null,
  note text not null, -- what was signed, with its signature
  hash bytea not null check (octet_length(hash) = 32), -- of the note: the next checkpoint repeats it
  at timestamptz(3) not null,
  primary key (organization_id, size)
);
create trigger audit_checkpoint_is_immutable before update or delete on audit_checkpoint
  for each row execute function refuse_change();

-- The public keys that have signed checkpoints. None is ever removed: old checkpoints are verified with them.
create table audit_key (
  id integer primary key,
  public_key bytea not null unique check (octet_length(public_key) = 32),
  created_at timestamptz(3) not null,
  retired_at timestamptz(3)
);
