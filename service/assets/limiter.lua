-- The twin of rolling-window.ts inside Redis: both must decide alike, call by call, and a test compares them.
-- The byte layout of all that is packed here is described in byte-layout.ts.
--
-- KEYS[1] is a hash with the packed counters of each scope (fields 'o', 'p<project>', 'k<key>'), KEYS[2] a
-- sorted set of leases ('<lease>|p<project>|k<key>|', scored by the end in ms), KEYS[3] an index of those leases.
-- All carry the organization as their hash tag. One hash and one packed answer take a third of the time that keys
-- and lists of numbers took. Time comes from this server, never from a caller; only tests pass it.
--
-- The index is a sorted set without scores, ordered by its members: for each lease 'o|<end>|<name>',
-- 'p<project>|<end>|<name>' and 'k<key>|p<project>|<end>|<name>'. The live leases of a scope are a range of it, which is counted
-- without reading it, however many there are. The set of leases stays the truth: the first version of this library knows
-- only that set, and its processes run beside ours during a rollout. Their leases are not in the index until they are
-- renewed, nor are those that were taken while the organization's limit was low. So the index is used only while it has
-- as many live leases as the set. What is in the index is changed and removed together with the set: a lease that only the index has would hide
-- one that only the set has.
--
-- `struct`, `string`, `math` and `redis.call` exist only while a function runs: no top-level statement may use
-- them. Scopes are unpacked into tables with named fields, and both windows are written out instead of looped
-- over: a loop over windows took half as much time again.

local SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60000, 3600000, 86400000
local KEPT_MS = DAY_MS + 2 * HOUR_MS
local SLOT_WAIT_MS = 1000
-- Up to so many live leases are read and counted one by one, which is faster than an index. The index is kept for
-- organizations that may have more, and from fewer on for others, whose limit may have been lowered.
local SCANNED_MAX = 64
local INDEXED_FROM = 32

local HEAD, HEAD_BYTES = '<I2I2I4I6I4I6', 24
local BUCKET, BUCKET_BYTES = '<I4I4I6', 14
local LIMITS = '<I6I6I6I6I4I6I6I6I6I4I6I6I6I6I4'
local VERDICT = '<BBBI6I6I4I4I6I6I4I4I4I6I6I4I4I4I6I6I4'
local LAST_KNOWN = '<I6I4I6I4I6'

-- The metrics with a window, numbered as in limit-metrics.ts: where a scope has their sum and their buckets.
local METRICS = {
  {unit = 'requests', used = 'minute_requests', from = 'minute_from', to = 'minute_to', bucket_ms = SECOND_MS, window_ms = MINUTE_MS},
  {unit = 'requests', used = 'day_requests', from = 'day_from', to = 'day_to', bucket_ms = HOUR_MS, window_ms = DAY_MS},
  {unit = 'tokens', used = 'minute_tokens', from = 'minute_from', to = 'minute_to', bucket_ms = SECOND_MS, window_ms = MINUTE_MS},
  {unit = 'tokens', used = 'day_tokens', from = 'day_from', to = 'day_to', bucket_ms = HOUR_MS, window_ms = DAY_MS},
}
-- The number of concurrent_requests, which is the last metric, and so the number of limits that a scope has.
local CONCURRENT = #METRICS + 1
local ORGANIZATION, PROJECT, KEY = 1, 2, 3

local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The newest bucket that counts no more: it has ended before the window began.
local function dead_bucket(now, bucket_ms, window_ms)
  return (now - window_ms) / bucket_ms - 1
end

-- Unpacks the counters of a scope. The sums are those of live buckets only. `from` and `to` are where the live
-- buckets of a window begin and end in `bytes`; the bytes of dead ones before them are left behind when the
-- scope is packed again.
local function unpack_scope(bytes, now)
  local first = HEAD_BYTES + 1
  if not bytes then
    return {
      bytes = '',
      minute_buckets = 0, minute_requests = 0, minute_tokens = 0, minute_from = first, minute_to = first,
      day_buckets = 0, day_requests = 0, day_tokens = 0, day_from = first, day_to = first,
    }
  end
  local minute_buckets, day_buckets, minute_requests, minute_tokens, day_requests, day_tokens =
    struct.unpack(HEAD, bytes)
  local minute_from, minute_to = first, first + minute_buckets * BUCKET_BYTES
  local day_from, day_to = minute_to, minute_to + day_buckets * BUCKET_BYTES
  local dead = dead_bucket(now, SECOND_MS, MINUTE_MS)
  while minute_buckets > 0 do
    local id, requests, tokens = struct.unpack(BUCKET, bytes, minute_from)
    if id > dead then break end
    minute_requests = minute_requests - requests
    minute_tokens = minute_tokens - tokens
    minute_buckets = minute_buckets - 1
    minute_from = minute_from + BUCKET_BYTES
  end
  dead = dead_bucket(now, HOUR_MS, DAY_MS)
  while day_buckets > 0 do
    local id, requests, tokens = struct.unpack(BUCKET, bytes, day_from)
    if id > dead then break end
    day_requests = day_requests - requests
    day_tokens = day_tokens - tokens
    day_buckets = day_buckets - 1
    day_from = day_from + BUCKET_BYTES
  end
  return {
    bytes = bytes,
    minute_buckets = minute_buckets, minute_requests = minute_requests, minute_tokens = minute_tokens,
    minute_from = minute_from, minute_to = minute_to,
    day_buckets = day_buckets, day_requests = day_requests, day_tokens = day_tokens,
    day_from = day_from, day_to = day_to,
  }
end

local function pack_head(scope)
  return struct.pack(HEAD, scope.minute_buckets, scope.day_buckets,
    scope.minute_requests, scope.minute_tokens, scope.day_requests, scope.day_tokens)
end

-- Adds an amount to the live buckets of one window. Returns the bytes of the older buckets, those of the newest
-- bucket, and by how many the number of buckets grew. The two texts are not joined: every copy costs time.
local function add_to_window(bytes, from, to, id, requests, tokens)
  if to > from then
    local newest_id, newest_requests, newest_tokens = struct.unpack(BUCKET, bytes, to - BUCKET_BYTES)
    -- When the clock has stepped back, the newest bucket counts.
    if newest_id >= id then
      return string.sub(bytes, from, to - BUCKET_BYTES - 1),
        struct.pack(BUCKET, newest_id, newest_requests + requests, newest_tokens + tokens), 0
    end
  end
  return string.sub(bytes, from, to - 1), struct.pack(BUCKET, id, requests, tokens), 1
end

-- Adds an amount to a scope and returns its packed counters. Some tokens count in the minute only.
local function add(scope, now, requests, tokens, day_tokens)
  local older_seconds, second, more_seconds = add_to_window(scope.bytes, scope.minute_from, scope.minute_to,
    math.floor(now / SECOND_MS), requests, tokens)
  local older_hours, hour, more_hours = add_to_window(scope.bytes, scope.day_from, scope.day_to,
    math.floor(now / HOUR_MS), requests, day_tokens)
  scope.minute_buckets = scope.minute_buckets + more_seconds
  scope.minute_requests = scope.minute_requests + requests
  scope.minute_tokens = scope.minute_tokens + tokens
  scope.day_buckets = scope.day_buckets + more_hours
  scope.day_requests = scope.day_requests + requests
  scope.day_tokens = scope.day_tokens + day_tokens
  return pack_head(scope) .. older_seconds .. second .. older_hours .. hour
end

-- How long until enough buckets have left the window; a whole window if the call is larger than the limit.
local function wait_for(scope, metric, excess, now)
  local freed = 0
  for position = scope[metric.from], scope[metric.to] - 1, BUCKET_BYTES do
    local id, requests, tokens = struct.unpack(BUCKET, scope.bytes, position)
    freed = freed + (metric.unit == 'requests' and requests or tokens)
    if freed >= excess then return (id + 1) * metric.bucket_ms + metric.window_ms - now end
  end
  return metric.window_ms
end

-- The members of a lease in the index. Times have a fixed width, so that the order of members is that of times.
local function index_members(name, project, key, ends_at)
  local rest = string.format('|%015d|', ends_at) .. name
  return 'o' .. rest, project .. rest, key .. '|' .. project .. rest
end

-- The fields of the project and the key in the name of a lease.
local function fields_of(name)
  return string.match(name, '|([^|]*)|([^|]*)|$')
end

local function add_to_index(index_key, name, project, key, ends_at)
  local of_organization, of_project, of_key = index_members(name, project, key, ends_at)
  redis.call('ZADD', index_key, 0, of_organization, 0, of_project, 0, of_key)
end

local function remove_from_index(index_key, name, project, key, ends_at)
  if redis.call('EXISTS', index_key) == 1 then
    redis.call('ZREM', index_key, index_members(name, project, key, ends_at))
  end
end

-- Removes the leases that have expired. The index is searched for its own: the first version of the library removes them
-- from the set of leases only.
local function drop_expired(leases_key, index_key, now)
  redis.call('ZREMRANGEBYSCORE', leases_key, '-inf', '(' .. now)
  local expired = redis.call('ZRANGEBYLEX', index_key, '[o|', '(o|' .. string.format('%015d', now), 'LIMIT', 0, 1000)
  for i = 1, #expired do
    local ends_at, name = string.match(expired[i], '^o|(%d+)|(.*)$')
    local project, key = fields_of(name)
    redis.call('ZREM', index_key, index_members(name, project, key, tonumber(ends_at)))
  end
end

-- How many live leases a scope has in the index. ':' comes after the digits of every time.
local function count_indexed(index_key, scope, now)
  return redis.call('ZLEXCOUNT', index_key, '[' .. scope .. '|' .. string.format('%015d', now), '(' .. scope .. '|:')
end

local function scan_leases(live, own_name, project, key)
  local in_project, in_key, is_held = 0, 0, false
  local project_part = '|' .. project .. '|'
  local key_part = project_part .. key .. '|'
  for i = 1, #live do
    local name = live[i]
    if name == own_name then is_held = true end
    if string.find(name, project_part, 1, true) then
      in_project = in_project + 1
      if string.find(name, key_part, 1, true) then in_key = in_key + 1 end
    end
  end
  return {#live, in_project, in_key}, is_held
end

-- Counts the live leases of the organization, the project and the key, and finds whether this one is among them.
local function count_leases(leases_key, index_key, now, own_name, project, key)
  local live = redis.call('ZCARD', leases_key)
  if live > SCANNED_MAX then live = redis.call('ZCOUNT', leases_key, now, '+inf') end
  if live <= SCANNED_MAX or count_indexed(index_key, 'o', now) ~= live then
    return scan_leases(redis.call('ZRANGEBYSCORE', leases_key, now, '+inf'), own_name, project, key)
  end
  local ends_at = redis.call('ZSCORE', leases_key, own_name)
  return {live, count_indexed(index_key, project, now), count_indexed(index_key, key .. '|' .. project, now)},
    ends_at and tonumber(ends_at) >= now
end

-- What a call costs by a metric.
local function cost_of(metric, tokens, day_tokens)
  if metric.unit == 'requests' then return 1 end
  return metric.window_ms == DAY_MS and day_tokens or tokens
end

-- Finds the narrowest scope without a free slot. 0, 0, 0: there is none.
local function find_full_scope(slots, limits)
  for s = KEY, ORGANIZATION, -1 do
    local limit = limits[(s - 1) * CONCURRENT + CONCURRENT]
    if slots[s] >= limit then return s, CONCURRENT, SLOT_WAIT_MS end
  end
  return 0, 0, 0
end

-- Finds the limit with the longest wait, of equal waits the first in the order of metrics; slots come before all windows.
-- 0, 0, 0: none refuses.
local function find_refusal(scopes, slots, limits, tokens, day_tokens, now)
  local refusing_scope, refusing_metric, longest_wait = find_full_scope(slots, limits)
  for m = 1, #METRICS do
    local metric = METRICS[m]
    local cost = cost_of(metric, tokens, day_tokens)
    for s = ORGANIZATION, KEY do
      local limit = limits[(s - 1) * CONCURRENT + m]
      local excess = scopes[s][metric.used] + cost - limit
      if excess > 0 then
        local wait = wait_for(scopes[s], metric, excess, now)
        if wait > longest_wait then refusing_scope, refusing_metric, longest_wait = s, m, wait end
      end
    end
  end
  return refusing_scope, refusing_metric, longest_wait
end

local function pack_verdict(scope, metric, now, wait, scopes, slots)
  local organization, project, key = scopes[ORGANIZATION], scopes[PROJECT], scopes[KEY]
  return struct.pack(VERDICT, scope == 0 and 1 or 0, scope, metric, now, wait,
    organization.minute_requests, organization.day_requests,
    organization.minute_tokens, organization.day_tokens, slots[ORGANIZATION],
    project.minute_requests, project.day_requests, project.minute_tokens, project.day_tokens, slots[PROJECT],
    key.minute_requests, key.day_requests, key.minute_tokens, key.day_tokens, slots[KEY])
end

-- Whether the tokens of a call count in the minute only, and in no quota.
local function counts_in_minute_only(args)
  return args[#args] == 'minute'
end

-- ARGV: now or 0, tokens, lease, lease ms, project field, key field, packed limits; with quotas, what quotas.lua describes;
-- for tokens that count in the minute only, 'minute' at the end.
-- Returns a packed verdict, and after it the answer about quotas, unless a limit refuses the call.
local function admit(keys, args)
  local counters_key, leases_key, index_key = keys[1], keys[2], keys[3]
  local now, tokens, lease, lease_ms = clock(args[1]), tonumber(args[2]), args[3], tonumber(args[4])
  local project_field, key_field, limits = args[5], args[6], {struct.unpack(LIMITS, args[7])}
  local packed = redis.call('HMGET', counters_key, 'o', project_field, key_field)
  local organization = unpack_scope(packed[1], now)
  local project, key = unpack_scope(packed[2], now), unpack_scope(packed[3], now)
  local scopes = {organization, project, key}
  local name = lease .. '|' .. project_field .. '|' .. key_field .. '|'
  local slots, is_held = count_leases(leases_key, index_key, now, name, project_field, key_field)
  -- The answer to an earlier try was lost: it has counted the call.
  local has_quotas = #keys > 3
  if is_held then
    return pack_verdict(0, 0, now, 0, scopes, slots) .. (has_quotas and read_quotas(keys, args) or '')
  end
  local day_tokens = counts_in_minute_only(args) and 0 or tokens
  local scope, metric, wait = find_refusal(scopes, slots, limits, tokens, day_tokens, now)
  if scope > 0 then return pack_verdict(scope, metric, now, wait, scopes, slots) end
  local quotas = ''
  if has_quotas then
    local outcome
    quotas, outcome = reserve_quotas(keys, args, now, lease_ms)
    if outcome == 'missing' then return pack_verdict(0, 0, now, 0, scopes, slots) .. quotas end
    -- The call leaves an event, so it counts as a request of the limits: refused calls must not fill the log.
    if outcome == 'refused' then tokens, day_tokens, lease_ms = 0, 0, 0 end
  end

  local seconds_before, hours_before = organization.minute_buckets, organization.day_buckets
  redis.call('HSET', counters_key, 'o', add(organization, now, 1, tokens, day_tokens),
    project_field, add(project, now, 1, tokens, day_tokens), key_field, add(key, now, 1, tokens, day_tokens))
  local is_new_second = organization.minute_buckets > seconds_before
  local is_new_hour = organization.day_buckets > hours_before
  if is_new_hour then redis.call('PEXPIRE', counters_key, KEPT_MS) end
  if lease_ms > 0 then
    -- Expired leases are dropped at most once a second.
    if is_new_second then drop_expired(leases_key, index_key, now) end
    redis.call('ZADD', leases_key, now + lease_ms, name)
    if is_new_hour or slots[ORGANIZATION] == 0 then redis.call('PEXPIRE', leases_key, KEPT_MS) end
    if limits[CONCURRENT] > SCANNED_MAX or slots[ORGANIZATION] >= INDEXED_FROM then
      add_to_index(index_key, name, project_field, key_field, now + lease_ms)
      redis.call('PEXPIRE', index_key, KEPT_MS)
    end
    for s = ORGANIZATION, KEY do slots[s] = slots[s] + 1 end
  end
  return pack_verdict(0, 0, now, 0, scopes, slots) .. quotas
end

-- Takes tokens out of the bucket with this id, at most as many as it holds. Returns the position of the bucket,
-- its new bytes, and how many tokens were taken; without such a bucket the end, no bytes, and 0. It searches
-- from the newest bucket, because most calls are short.
local function take_from_window(bytes, from, to, id, tokens)
  for position = to - BUCKET_BYTES, from, -BUCKET_BYTES do
    local found_id, requests, held = struct.unpack(BUCKET, bytes, position)
    if found_id == id then
      local taken = math.min(held, tokens)
      return position, struct.pack(BUCKET, id, requests, held - taken), taken
    end
    if found_id < id then break end
  end
  return to, '', 0
end

-- Gives tokens back to the buckets of the time of admission, and returns the packed counters. Dead buckets stay,
-- with their share of the sums: the next `unpack_scope` removes both.
local function give_back(bytes, admitted_at, tokens, tokens_of_day)
  local minute_buckets, day_buckets, minute_requests, minute_tokens, day_requests, day_tokens =
    struct.unpack(HEAD, bytes)
  local minute_from = HEAD_BYTES + 1
  local minute_to = minute_from + minute_buckets * BUCKET_BYTES
  local day_to = minute_to + day_buckets * BUCKET_BYTES
  local second_at, second, taken_of_minute = take_from_window(bytes, minute_from, minute_to,
    math.floor(admitted_at / SECOND_MS), tokens)
  local hour_at, hour, taken_of_day = take_from_window(bytes, minute_to, day_to,
    math.floor(admitted_at / HOUR_MS), tokens_of_day)
  return struct.pack(HEAD, minute_buckets, day_buckets, minute_requests, minute_tokens - taken_of_minute,
      day_requests, day_tokens - taken_of_day)
    .. string.sub(bytes, minute_from, second_at - 1) .. second
    .. string.sub(bytes, second_at + #second, hour_at - 1) .. hour
    .. string.sub(bytes, hour_at + #hour)
end

-- ARGV: now or 0, lease, reserved, used, time of admission, project field, key field; at the end 'minute', as for `admit`.
-- Returns 1 if the lease was still held.
local function settle_slot(keys, args)
  local counters_key, leases_key, index_key = keys[1], keys[2], keys[3]
  local now, lease, admitted_at = clock(args[1]), args[2], tonumber(args[5])
  local difference = tonumber(args[4]) - tonumber(args[3])
  local fields = {'o', args[6], args[7]}
  local name = lease .. '|' .. fields[PROJECT] .. '|' .. fields[KEY] .. '|'
  local ends_at = redis.call('ZSCORE', leases_key, name)
  local held = 0
  if ends_at then
    if tonumber(ends_at) >= now then held = 1 end
    redis.call('ZREM', leases_key, name)
    remove_from_index(index_key, name, fields[PROJECT], fields[KEY], tonumber(ends_at))
  end
  -- Without its lease the call may have been settled before. To give back twice would count too few tokens; to add
  -- twice counts too many, which only costs the caller a part of its limit.
  if difference == 0 or (difference < 0 and held == 0) then return held end
  local packed = redis.call('HMGET', counters_key, fields[ORGANIZATION], fields[PROJECT], fields[KEY])
  local changed, day_difference = {}, counts_in_minute_only(args) and 0 or difference
  for s = ORGANIZATION, KEY do
    local bytes
    if difference > 0 then bytes = add(unpack_scope(packed[s], now), now, 0, difference, day_difference)
    elseif packed[s] then bytes = give_back(packed[s], admitted_at, -difference, -day_difference) end
    if bytes then
      changed[#changed + 1] = fields[s]
      changed[#changed + 1] = bytes
    end
  end
  if #changed > 0 then redis.call('HSET', counters_key, unpack(changed)) end
  if difference > 0 then redis.call('PEXPIRE', counters_key, KEPT_MS) end
  return held
end

-- As settle_slot. With quotas, quotas.lua describes the further arguments, and the answer is a text: a byte that is 1 if
-- the lease was still held, and the answer about quotas.
local function settle(keys, args)
  local held = settle_slot(keys, args)
  if #keys == 3 then return held end
  local used = counts_in_minute_only(args) and 0 or tonumber(args[4])
  return string.char(held) .. settle_quotas(keys, args, used)
end

-- ARGV: now or 0, lease ms, then names of leases. A lost lease is added again: its call is running. Returns how
-- many were still held.
local function renew(keys, args)
  local leases_key, index_key = keys[2], keys[3]
  local now, lease_ms, held = clock(args[1]), tonumber(args[2]), 0
  local is_indexed = redis.call('ZCARD', leases_key) + #args - 2 > INDEXED_FROM
    or redis.call('EXISTS', index_key) == 1
  for i = 3, #args do
    local name = args[i]
    local project, key = fields_of(name)
    local ends_at = redis.call('ZSCORE', leases_key, name)
    if ends_at then
      if tonumber(ends_at) >= now then held = held + 1 end
      remove_from_index(index_key, name, project, key, tonumber(ends_at))
    end
    redis.call('ZADD', leases_key, now + lease_ms, name)
    if is_indexed then add_to_index(index_key, name, project, key, now + lease_ms) end
  end
  redis.call('PEXPIRE', leases_key, KEPT_MS)
  if is_indexed then redis.call('PEXPIRE', index_key, KEPT_MS) end
  return held
end

-- ARGV: names of leases, which are freed. Returns how many there were.
local function release(keys, args)
  local leases_key, index_key, freed = keys[2], keys[3], 0
  for i = 1, #args do
    local name = args[i]
    local ends_at = redis.call('ZSCORE', leases_key, name)
    if ends_at then
      local project, key = fields_of(name)
      redis.call('ZREM', leases_key, name)
      remove_from_index(index_key, name, project, key, tonumber(ends_at))
      freed = freed + 1
    end
  end
  return freed
end

-- Merges two texts of buckets, each sorted by id; buckets with the same id are added up. Returns the bytes, and
-- the number and the sums of the buckets.
local function merge(left, right)
  local parts, all_requests, all_tokens = {}, 0, 0
  local left_at, right_at = 1, 1
  while left_at < #left or right_at < #right do
    local left_id, left_requests, left_tokens = math.huge, 0, 0
    local right_id, right_requests, right_tokens = math.huge, 0, 0
    if left_at < #left then left_id, left_requests, left_tokens = struct.unpack(BUCKET, left, left_at) end
    if right_at < #right then right_id, right_requests, right_tokens = struct.unpack(BUCKET, right, right_at) end
    local id, requests, tokens = math.min(left_id, right_id), 0, 0
    if left_id == id then
      requests, tokens, left_at = requests + left_requests, tokens + left_tokens, left_at + BUCKET_BYTES
    end
    if right_id == id then
      requests, tokens, right_at = requests + right_requests, tokens + right_tokens, right_at + BUCKET_BYTES
    end
    parts[#parts + 1] = struct.pack(BUCKET, id, requests, tokens)
    all_requests, all_tokens = all_requests + requests, all_tokens + tokens
  end
  return table.concat(parts), #parts, all_requests, all_tokens
end

-- Last known usage as one bucket; none if it has left the window.
local function restored_bucket(at, now, bucket_ms, window_ms, requests, tokens)
  local id = math.floor(at / bucket_ms)
  if id <= dead_bucket(now, bucket_ms, window_ms) or (requests == 0 and tokens == 0) then return '' end
  return struct.pack(BUCKET, id, requests, tokens)
end

-- ARGV: now or 0, then for each scope its field, the counters to add, and its last known usage ('' if none),
-- which is restored if there are no counters of the scope.
local function absorb(keys, args)
  local counters_key, now = keys[1], clock(args[1])
  for i = 2, #args, 3 do
    local field, last_known = args[i], args[i + 2]
    local packed = redis.call('HGET', counters_key, field)
    local scope, added = unpack_scope(packed, now), unpack_scope(args[i + 1], now)
    local seconds = string.sub(scope.bytes, scope.minute_from, scope.minute_to - 1)
    local hours = string.sub(scope.bytes, scope.day_from, scope.day_to - 1)
    if not packed and last_known ~= '' then
      local at, minute_requests, minute_tokens, day_requests, day_tokens = struct.unpack(LAST_KNOWN, last_known)
      seconds = restored_bucket(at, now, SECOND_MS, MINUTE_MS, minute_requests, minute_tokens)
      hours = restored_bucket(at, now, HOUR_MS, DAY_MS, day_requests, day_tokens)
    end
    seconds, scope.minute_buckets, scope.minute_requests, scope.minute_tokens =
      merge(seconds, string.sub(added.bytes, added.minute_from, added.minute_to - 1))
    hours, scope.day_buckets, scope.day_requests, scope.day_tokens =
      merge(hours, string.sub(added.bytes, added.day_from, added.day_to - 1))
    if scope.day_buckets > 0 then
      redis.call('HSET', counters_key, field, pack_head(scope) .. seconds .. hours)
    end
  end
  redis.call('PEXPIRE', counters_key, KEPT_MS)
  return 1
end
