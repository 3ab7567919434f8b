import type pg from 'pg'

/** Every place of the database in which one of the texts stands, as text or as bytes. */
export async function findInDatabase(
  database: pg.Client,
  texts: readonly string[],
): Promise<string[]> {
  const { rows: tables } = await database.query<{ name: string }>(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`,
  )
  const found: string[] = []
  for (const { name } of tables) {
    for (const text of texts) {
      // Columns of bytes are written in hexadecimal.
      const hex = Buffer.from(text).toString('hex')
      const { rows } = await database.query<{ count: number }>(
        `select count(*)::integer as count from ${name} as one
          where strpos(one::text, $1) > 0 or strpos(one::text, $2) > 0`,
        [text, hex],
      )
      if (rows[0]?.count !== 0) found.push(name)
    }
  }
  return found
}
