import { Agent, request } from 'node:http'

// A process of its own that walks a list to its end, page by page, and reports what it saw and how long
// each page took: the pauses of a test runner must not be taken for the service's.

export type Walk = { address: string; key: string; order: 'asc' | 'desc' }

/** Or why it could not be walked. */
export type Walked =
  | { ids: string[]; pageMs: number[]; cursorsDeleted: number }
  | { failure: string }

type Item = { id: string; revision: number }
type Page = { data: Item[]; has_more: boolean; last_id: string | null }
type Answer = { status: number; text: string; tookMs: number }

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
/** Every so often the item that the next page begins behind is deleted first. */
const pagesPerDeletion = 10

function send(method: string, address: string, key: string): Promise<Answer> {
  const sentAt = performance.now()
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` }
    request(address, { method, agent, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('end', () => {
        const tookMs = performance.now() - sentAt
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode ?? 0, text, tookMs })
      })
    })
      .once('error', reject)
      .end()
  })
}

async function walk({ address, key, order }: Walk): Promise<Walked> {
  const ids: string[] = []
  const pageMs: number[] = []
  let cursorsDeleted = 0
  for (let after: string | null = null; ;) {
    const query = `?limit=100&order=${order}${after === null ? '' : `&after=${after}`}`
    const { status, text, tookMs } = await send('GET', `${address}${query}`, key)
    if (status !== 200) throw new Error(text)
    pageMs.push(tookMs)
    const page = JSON.parse(text) as Page
    for (const { id } of page.data) ids.push(id)
    if (!page.has_more) return { ids, pageMs, cursorsDeleted }
    if (page.data.length !== 100) throw new Error('a page before the last is not full')
    after = page.last_id
    const last = page.data.at(-1)
    if (pageMs.length % pagesPerDeletion > 0 || !last) continue
    const place = `${address}/${last.id}?revision=${last.revision}`
    const deleted = await send('DELETE', place, key)
    // Somebody else may have been quicker.
    if (deleted.status !== 200 && deleted.status !== 404) throw new Error(deleted.text)
    cursorsDeleted++
  }
}

process.on('message', (message) => {
  walk(message as Walk).then(
    (walked) => process.send?.(walked),
    (error: unknown) => process.send?.({ failure: String(error) } satisfies Walked),
  )
})
process.on('disconnect', () => process.exit(0))
