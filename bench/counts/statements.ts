import type { OwnServers } from '../servers/own-servers.ts'

type Postgres = OwnServers['postgres']

/** Counts the statements that PostgreSQL executes in one database, and the transactions that write there or elsewhere. */
export async function watchStatements({ query }: Postgres, database: string) {
  await query('create extension if not exists pg_stat_statements')
  const readTransactions = async () => {
    const [row] = await query('select pg_snapshot_xmax(pg_current_snapshot())::text as next')
    return Number(row?.['next'])
  }
  let transactions = 0
  return {
    async start() {
      await query('select pg_stat_statements_reset()')
      transactions = await readTransactions()
    },
    async read() {
      const commits = (await readTransactions()) - transactions
      const rows = await query(
        `select s.query, s.calls::text from pg_stat_statements s join pg_database d on d.oid = s.dbid
         where d.datname = '${database}'`,
      )
      const statements = new Map<string, number>()
      for (const { query: text = '', calls = '0' } of rows) {
        const name = text.replaceAll(/\s+/g, ' ').trim().slice(0, 70)
        statements.set(name, (statements.get(name) ?? 0) + Number(calls))
      }
      return { statements, commits }
    },
  }
}
