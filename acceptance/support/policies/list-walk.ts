import { Agent, request } from 'node:http'

// A separate process that reads a list to its end and times each page, so that pauses of the test runner do not count
// as the service's. After each page it reads one from the bare list server, so that both are timed under the same load, and
// reports progress.

export type Walk = {
  address: string
  key: string
  order: 'asc' | 'desc'
  baselineAddress: string
}

export type Walked = {
  ids: string[]
  pageMs: number[]
  baselineMs: number[]
  cursorsDeleted: number
}

type Item = { id: string; revision: number; state: string }
type Page = { data: Item[]; has_more: boolean; last_id: string | null }
type Answer = { status: number; text: string; tookMs: number }

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
/** After at least this many pages, the item that the next page starts after is deleted before that page is read. */
const pagesPerDeletion = 9
/** To delete a policy in force has an effect on calls besides, which is not what is measured. */
const isDeletable = ({ state }: Item) => state === 'draft' || state === 'paused'

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

async function read(address: string, key: string): Promise<Answer> {
  const answer = await send('GET', address, key)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer
}

async function walk({ address, key, order, baselineAddress }: Walk): Promise<Walked> {
  const walked: Walked = { ids: [], pageMs: [], baselineMs: [], cursorsDeleted: 0 }
  let pagesSinceDeletion = 0
  for (let after: string | null = null; ;) {
    const query = `?limit=100&order=${order}${after === null ? '' : `&after=${after}`}`
    const { text, tookMs } = await read(`${address}${query}`, key)
    walked.pageMs.push(tookMs)
    walked.baselineMs.push((await read(baselineAddress, key)).tookMs)
    process.send?.({ progress: true })
    const page = JSON.parse(text) as Page
    for (const { id } of page.data) walked.ids.push(id)
    if (!page.has_more) return walked
    if (page.data.length !== 100) throw new Error('A page before the last one is not full.')
    after = page.last_id
    const last = page.data.at(-1)
    if (++pagesSinceDeletion < pagesPerDeletion || !last || !isDeletable(last)) continue
    pagesSinceDeletion = 0
    const deleted = await send('DELETE', `${address}/${last.id}?revision=${last.revision}`, key)
    // Another client may have deleted it already.
    if (deleted.status !== 200 && deleted.status !== 404) throw new Error(deleted.text)
    walked.cursorsDeleted++
  }
}

process.on('message', (message) => {
  walk(message as Walk).then(
    (walked) => process.send?.(walked),
    (error: unknown) => process.send?.({ failure: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))
