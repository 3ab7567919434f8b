-- The twin of quotas/quota-counts.ts inside Redis: quotas and budgets in periods of the calendar. The byte layout is
-- described in byte-layout.ts. This text stands before limiter.lua, which calls it.
--
-- For each period there is a hash of packed counters, by field, and a sorted set of reservations
-- ('<lease>|<tokens>|<credits>|<field>|<field>…', scored by the end in ms). Callers decide which period it is, by the
-- clock of this server as they know it, and name its keys. A counter that is not there must be loaded from the database
-- by the caller: Redis may have lost it.

local COUNTER = '<I6I6I6I6I6'
local QUOTA_LIMIT, QUOTA_LIMIT_BYTES = '<I6I6I6', 18
local KNOWN, KNOWN_BYTES = '<BI6I6I6', 19
local QUOTA_HEAD, QUOTA_USAGE, SETTLED = '<BB', '<BI6I6I6I6', '<I6'
local KNOWN_MAX_MS = 2000
-- Periods are kept a while after their end, for calls that end late.
local KEPT_AFTER_END_MS = 7200000
-- How many expired reservations one call gives back.
local EXPIRED_MAX = 100

-- The tokens, the credits and, from the fourth part on, the fields of a reservation.
local function read_reservation(name)
  local parts = {}
  for part in string.gmatch(name, '[^|]+') do parts[#parts + 1] = part end
  return tonumber(parts[2]), tonumber(parts[3]), parts
end

local function unpack_counter(bytes)
  local requests, tokens, reserved_tokens, credits, reserved_credits = struct.unpack(COUNTER, bytes)
  return {requests = requests, tokens = tokens, reserved_tokens = reserved_tokens,
    credits = credits, reserved_credits = reserved_credits}
end

local function pack_counter(counter)
  return struct.pack(COUNTER, counter.requests, counter.tokens, counter.reserved_tokens,
    counter.credits, counter.reserved_credits)
end

-- Changes those counters of a reservation that are there. Returns all of them, false where there is none.
local function change_counters(counters_key, parts, change)
  local packed = redis.call('HMGET', counters_key, unpack(parts, 4))
  local changed, counters = {}, {}
  for i = 1, #packed do
    counters[i] = packed[i] and unpack_counter(packed[i])
    if counters[i] then
      change(counters[i])
      changed[#changed + 1] = parts[3 + i]
      changed[#changed + 1] = pack_counter(counters[i])
    end
  end
  if #changed > 0 then redis.call('HSET', counters_key, unpack(changed)) end
  return counters
end

-- Never below 0: a counter that was loaded meanwhile may lack what is given back.
local function give_back_reserved(counter, tokens, credits)
  counter.reserved_tokens = math.max(0, counter.reserved_tokens - tokens)
  counter.reserved_credits = math.max(0, counter.reserved_credits - credits)
end

local function take_reserved(counter, tokens, credits)
  counter.requests = counter.requests + 1
  counter.reserved_tokens = counter.reserved_tokens + tokens
  counter.reserved_credits = counter.reserved_credits + credits
end

local function give_back_expired(counters_key, reservations_key, now)
  local expired = redis.call('ZRANGEBYSCORE', reservations_key, '-inf', '(' .. now, 'LIMIT', 0, EXPIRED_MAX)
  for i = 1, #expired do
    local tokens, credits, parts = read_reservation(expired[i])
    change_counters(counters_key, parts, function(counter) give_back_reserved(counter, tokens, credits) end)
    redis.call('ZREM', reservations_key, expired[i])
  end
end

-- A counter of what the database has, and of what running calls reserve.
local function load_counter(reservations_key, field, requests, tokens, credits)
  local counter = {requests = requests, tokens = tokens, reserved_tokens = 0, credits = credits, reserved_credits = 0}
  local running = redis.call('ZRANGE', reservations_key, 0, -1)
  for i = 1, #running do
    local reserved_tokens, reserved_credits, parts = read_reservation(running[i])
    for part = 4, #parts do
      if parts[part] == field then take_reserved(counter, reserved_tokens, reserved_credits) end
    end
  end
  return counter
end

local function quota_exceeded(counter, limits, position, tokens, credits)
  local requests_max, tokens_max, credits_max = struct.unpack(QUOTA_LIMIT, limits, position)
  if counter.requests + 1 > requests_max then return 1 end
  -- A quota may have been lowered: what costs nothing of it is not refused by it.
  if tokens > 0 and counter.tokens + counter.reserved_tokens + tokens > tokens_max then return 2 end
  if credits > 0 and counter.credits + counter.reserved_credits + credits > credits_max then return 3 end
  return 0
end

-- The answer about quotas: which counter refuses, by which unit, and the usage of all.
local function pack_quotas(counters, refusing, unit)
  local texts = {struct.pack(QUOTA_HEAD, refusing, unit)}
  for i = 1, #counters do
    local counter = counters[i]
    if counter then
      texts[i + 1] = struct.pack(QUOTA_USAGE, 0, counter.requests, counter.tokens + counter.reserved_tokens,
        counter.credits + counter.reserved_credits, counter.credits)
    else
      texts[i + 1] = struct.pack(QUOTA_USAGE, 1, 0, 0, 0, 0)
    end
  end
  return table.concat(texts)
end

-- The periods of a call. KEYS from the fourth on: counters and reservations of each. ARGV from the eighth on: when the
-- known amounts were asked for; for each period the reservation, its end in ms, the limits and the known amounts of its
-- counters ('' if none).
local function read_periods(keys, args)
  local periods = {}
  for at = 4, #keys, 2 do
    local first = 9 + (at - 4) * 2
    local tokens, credits, parts = read_reservation(args[first])
    periods[#periods + 1] = {counters_key = keys[at], reservations_key = keys[at + 1], name = args[first],
      ends_at = args[first + 1], limits = args[first + 2], known = args[first + 3],
      tokens = tokens, credits = credits, parts = parts}
  end
  return periods
end

-- Reserves what a call may use in all of its counters, or in none. Returns the packed answer, and whether the call may
-- go on, is refused, or must be asked about again with the amounts of missing counters.
local function reserve_quotas(keys, args, now, lease_ms)
  local periods, all = read_periods(keys, args), {}
  local has_known = now - tonumber(args[8]) <= KNOWN_MAX_MS
  local is_missing, refusing, unit = false, 0, 0
  for p = 1, #periods do
    local period = periods[p]
    give_back_expired(period.counters_key, period.reservations_key, now)
    local packed = redis.call('HMGET', period.counters_key, unpack(period.parts, 4))
    period.counters = {}
    for i = 1, #packed do
      local counter = packed[i] and unpack_counter(packed[i])
      if not counter and has_known and period.known ~= '' then
        local is_known, requests, tokens, credits = struct.unpack(KNOWN, period.known, (i - 1) * KNOWN_BYTES + 1)
        if is_known == 1 then
          counter = load_counter(period.reservations_key, period.parts[3 + i], requests, tokens, credits)
          period.is_loaded = true
        end
      end
      period.counters[i], all[#all + 1] = counter, counter
      if not counter then is_missing = true
      elseif refusing == 0 then
        unit = quota_exceeded(counter, period.limits, (i - 1) * QUOTA_LIMIT_BYTES + 1, period.tokens, period.credits)
        if unit > 0 then refusing = #all end
      end
    end
  end
  if is_missing then return pack_quotas(all, 0, 0), 'missing' end

  for p = 1, #periods do
    local period = periods[p]
    local kept_until = string.format('%.0f', tonumber(period.ends_at) + KEPT_AFTER_END_MS)
    local changed = {}
    for i = 1, #period.counters do
      if refusing == 0 then take_reserved(period.counters[i], period.tokens, period.credits) end
      changed[2 * i - 1], changed[2 * i] = period.parts[3 + i], pack_counter(period.counters[i])
    end
    redis.call('HSET', period.counters_key, unpack(changed))
    if period.is_loaded then redis.call('PEXPIREAT', period.counters_key, kept_until) end
    if refusing == 0 then
      redis.call('ZADD', period.reservations_key, now + lease_ms, period.name)
      redis.call('PEXPIREAT', period.reservations_key, kept_until)
    end
  end
  return pack_quotas(all, refusing, unit), refusing == 0 and 'reserved' or 'refused'
end

-- The answer for a call that an earlier try has counted.
local function read_quotas(keys, args)
  local periods, all = read_periods(keys, args), {}
  for p = 1, #periods do
    local packed = redis.call('HMGET', periods[p].counters_key, unpack(periods[p].parts, 4))
    for i = 1, #packed do
      all[#all + 1] = unpack_counter(packed[i] or struct.pack(COUNTER, 0, 0, 0, 0, 0))
    end
  end
  return pack_quotas(all, 0, 0)
end

-- ARGV from the eighth on: the used credits, and the reservation of each period. If a reservation has expired or was
-- lost, the usage is added. Returns the credits of ended calls, packed, for each counter.
local function settle_quotas(keys, args, used_tokens)
  local used_credits, settled = tonumber(args[8]), {}
  for at = 4, #keys, 2 do
    local name = args[9 + (at - 4) / 2]
    local tokens, credits, parts = read_reservation(name)
    local was_reserved = redis.call('ZREM', keys[at + 1], name) == 1
    local counters = change_counters(keys[at], parts, function(counter)
      if was_reserved then give_back_reserved(counter, tokens, credits) end
      counter.tokens = counter.tokens + used_tokens
      counter.credits = counter.credits + used_credits
    end)
    for i = 1, #counters do
      settled[#settled + 1] = struct.pack(SETTLED, counters[i] and counters[i].credits or 0)
    end
  end
  return table.concat(settled)
end

-- KEYS: counters and reservations of one period. ARGV: now or 0, lease ms, end of the period in ms, then reservations,
-- whose calls are running. What was lost is reserved again, with its request.
local function renew_quotas(keys, args)
  local now, lease_ms = args[1], tonumber(args[2])
  if now == '0' then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  for i = 4, #args do
    local is_lost = redis.call('ZADD', keys[2], now + lease_ms, args[i]) == 1
    if is_lost then
      local tokens, credits, parts = read_reservation(args[i])
      change_counters(keys[1], parts, function(counter) take_reserved(counter, tokens, credits) end)
    end
  end
  redis.call('PEXPIREAT', keys[2], string.format('%.0f', tonumber(args[3]) + KEPT_AFTER_END_MS))
  return 1
end

-- KEYS: counters and reservations of one period. ARGV: the number of reservations to remove, those, and the fields of
-- counters to remove: they are then loaded again.
local function forget_quotas(keys, args)
  local names_end = 1 + tonumber(args[1])
  for i = 2, #args do
    if i <= names_end then redis.call('ZREM', keys[2], args[i])
    else redis.call('HDEL', keys[1], args[i]) end
  end
  return 1
end

