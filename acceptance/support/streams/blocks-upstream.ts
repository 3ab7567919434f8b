import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

import { afterAll } from 'vitest'

/** An upstream that speaks Messages and divides its answers over several text blocks, as providers do around citations. */
export async function startBlocksUpstream() {
  let blocks: readonly string[] = []
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const isStreamed = (body as { stream?: boolean }).stream === true
      const type = isStreamed ? 'text/event-stream' : 'application/json'
      response.writeHead(200, { 'content-type': type })
      response.end(isStreamed ? streamOf(blocks) : JSON.stringify(messageOf(blocks)))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** What it answers from now on. */
    say(next: readonly string[]) {
      blocks = next
    },
  }
}

const begun = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'blocks',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
}

const messageOf = (blocks: readonly string[]) => ({
  ...begun,
  content: blocks.map((text) => ({ type: 'text', text })),
  stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 5 },
})

function streamOf(blocks: readonly string[]): string {
  const events = [
    { type: 'message_start', message: begun },
    ...blocks.flatMap((text, index) => [
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
      { type: 'content_block_stop', index },
    ]),
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 5 },
    },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
}
