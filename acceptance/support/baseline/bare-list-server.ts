import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import pg from 'pg'

// The minimum that a list costs on this machine: a separate process that answers every request with one page of a table
// that holds nothing else. The service's lists are compared with it at the same time.

export type BareList = { databaseUrl: string; statement: string }

async function serve({ databaseUrl, statement }: BareList): Promise<string> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 })
  pool.on('error', () => undefined)
  const query = { name: 'page', text: statement }
  const server = createServer((_, response) => {
    pool.query(query).then(
      ({ rows }) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ data: rows, has_more: true })),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

process.on('message', (message) => {
  serve(message as BareList).then(
    (address) => process.send?.({ address }),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
