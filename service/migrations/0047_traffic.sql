-- Works with releases since 0010

-- Calls summed by time, for charts. The worker adds them up from numbered events; no call waits for it.

-- How many events of an organization are in the sums. It moves in the transaction of the sums, so each event counts once. The
-- sums begin with this migration: events that have a number by now say neither their time nor their first token.
alter table audit_head add column summed_size bigint not null default 0;
update audit_head set summed_size = org_seq;
create index audit_head_unsummed on audit_head (organization_id) where org_seq > summed_size;

create type traffic_span as enum ('minute', 'hour', 'day');

-- A histogram is a list of cells in the order of their buckets: the number of the bucket in the upper bits, from 2^40 on, and how
-- many values are in it below (service/src/traffic/histogram.ts). Buckets without values have no cell.
create function add_histograms(one bigint[], other bigint[]) returns bigint[]
language sql immutable parallel safe as $$
  select coalesce(array_agg((bucket << 40) + amount order by bucket), '{}') from (
    select cell >> 40 as bucket, sum(cell & 1099511627775)::bigint as amount
    from unnest(one || other) as cell group by 1
  ) as cells
$$;

create table traffic_sum (
  organization_id text collate "C" not null,
  span traffic_span not null,
  start timestamptz(0) not null, -- the beginning of the minute, hour or day, in UTC, of the event's own time
  project_id text collate "C" not null, -- empty: none; *: all that have no row of their own in this span
  model text collate "C" not null, -- the same
  outcome text collate "C" not null,
  status_class text collate "C" not null check (status_class in ('2xx', '4xx', '5xx', 'none')),
  calls bigint not null check (calls > 0),
  input_tokens bigint not null,
  cached_input_tokens bigint not null,
  output_tokens bigint not null,
  credits bigint not null,
  latency bigint[] not null, -- a histogram, in milliseconds
  first_token bigint[] not null,
  primary key (organization_id, span, start, project_id, model, outcome, status_class)
) with (fillfactor = 70);
create index traffic_sum_by_age on traffic_sum (span, start);

create table traffic_key_day (
  organization_id text collate "C" not null,
  day date not null,
  key_id text collate "C" not null, -- *: all that have no row of their own on this day
  outcome text collate "C" not null,
  calls bigint not null check (calls > 0),
  input_tokens bigint not null,
  cached_input_tokens bigint not null,
  output_tokens bigint not null,
  credits bigint not null,
  primary key (organization_id, day, key_id, outcome)
) with (fillfactor = 70);
create index traffic_key_day_by_age on traffic_key_day (day);
