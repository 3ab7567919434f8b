import { readFile } from 'node:fs/promises'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

import { path } from '../chat-call.ts'
import { headerSets } from '../header-sets.ts'
import type { Target } from '../targets/target.ts'

/** When what is on the screen has changed, in the milliseconds of the page. */
export type Shown = { sentAt: number; changes: number[] }

/** Serves the page, passes its call on to a target, and waits for what it reports. */
export async function servePage(target: Target, body: string) {
  const page = await readFile(new URL('page.html', import.meta.url))
  const { promise, resolve } = Promise.withResolvers<Shown>()

  function stream(response: ServerResponse) {
    const [headers = {}] = headerSets(target)
    const sent = { ...headers, 'content-length': Buffer.byteLength(body) }
    const call = request(target.url + path, { method: 'POST', headers: sent }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, { 'content-type': 'text/event-stream' })
      // Without Nagle's algorithm and without buffers: the page gets what the target has written.
      response.flushHeaders()
      answer.pipe(response)
    })
    call.once('error', () => response.destroy()).end(body)
  }

  const server = createServer((asked, response) => {
    if (asked.url === '/stream') return stream(response)
    if (asked.url !== '/result') return response.setHeader('content-type', 'text/html').end(page)
    void text(asked).then((result) => {
      response.end()
      resolve(JSON.parse(result) as Shown)
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    shown: promise,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
