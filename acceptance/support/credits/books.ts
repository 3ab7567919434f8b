import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

// Credits as PostgreSQL stores them, read without the service.

export type LedgerRow = {
  organizationId: string
  id: string
  debit: string
  credit: string
  amount: number
  kind: string
  model: string | null
  inputTokens: number | null
  outputTokens: number | null
  usageSource: string | null
}

type AccountRow = { organizationId: string; posted: number; used: number; held: number }

/** An enforcement event; `outcome` is `unknown` if the process died before it could record one. */
type CallEventRow = { organizationId: string; requestId: string; outcome: string }

/** The daily totals behind the usage charts. */
type DaysRow = { organizationId: string; requests: number; credits: number }

export type Books = {
  ledger: LedgerRow[]
  accounts: AccountRow[]
  holds: number
  events: CallEventRow[]
  days: DaysRow[]
}

// Amounts in a test are far below 2^53.
const statements = {
  ledger: `select organization_id as "organizationId", id, debit, credit, amount::float8 as amount, kind,
      meta->>'model' as model, (meta->>'input_tokens')::float8 as "inputTokens",
      (meta->>'output_tokens')::float8 as "outputTokens", meta->>'usage_source' as "usageSource"
    from ledger_entry order by seq`,
  accounts: `select organization_id as "organizationId", posted::float8 as posted, used::float8 as used,
      held::float8 as held from credit_account`,
  holds: 'select count(*)::int as count from credit_hold',
  events: `select organization_id as "organizationId", header->>'request_id' as "requestId",
      header->>'outcome' as outcome from event where kind = 'enforcement'`,
  days: `select organization_id as "organizationId", sum(requests)::float8 as requests,
      sum(credits)::float8 as credits from usage_day group by 1`,
}

/** Opens a connection for every query, because PostgreSQL is restarted between them. */
async function runQuery<T>(url: string, statement: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query(statement)).rows as T[]
  } finally {
    await client.end().catch(() => undefined)
  }
}

export async function readBooks(url: string): Promise<Books> {
  return {
    ledger: await runQuery<LedgerRow>(url, statements.ledger),
    accounts: await runQuery<AccountRow>(url, statements.accounts),
    holds: await countHolds(url),
    events: await runQuery<CallEventRow>(url, statements.events),
    days: await runQuery<DaysRow>(url, statements.days),
  }
}

export async function countHolds(url: string): Promise<number> {
  const [row] = await runQuery<{ count: number }>(url, statements.holds)
  return row?.count ?? 0
}

/** Finds accounts that disagree with their holds or their ledger; one statement reads one snapshot. */
const findInconsistent = (mayBeNegative: boolean) => `
  select a.organization_id as "organizationId", a.posted::float8 as posted, a.held::float8 as held,
    a.used::float8 as used, coalesce(h.sum, 0)::float8 as holds,
    coalesce(l.balance, 0)::float8 as balance, coalesce(l.charged, 0)::float8 as charged
  from credit_account a
  left join (select organization_id, sum(amount) from credit_hold group by 1) h using (organization_id)
  left join (
    select organization_id, coalesce(sum(amount) filter (where credit = 'wallet'), 0)
        - coalesce(sum(amount) filter (where debit = 'wallet'), 0) as balance,
      sum(amount) filter (where debit = 'wallet' and credit = 'revenue') as charged
    from ledger_entry group by 1
  ) l using (organization_id)
  where (a.posted - a.held < 0 and not ${mayBeNegative}) or a.held <> coalesce(h.sum, 0)
    or a.posted <> coalesce(l.balance, 0) or a.used <> coalesce(l.charged, 0)`

/** Checks all balances until it is stopped; checks that fail while PostgreSQL is down are skipped. */
export function watchBalances(url: string, mayBeNegative = false, everyMs = 150) {
  const found: object[] = []
  let checks = 0
  let isOver = false
  const check = async () => {
    while (!isOver) {
      await runQuery<object>(url, findInconsistent(mayBeNegative)).then(
        (rows) => {
          checks++
          found.push(...rows)
        },
        () => undefined,
      )
      await sleep(everyMs)
    }
  }
  const running = check()
  return {
    stop: async () => {
      isOver = true
      await running
      return { checks, found }
    },
  }
}
