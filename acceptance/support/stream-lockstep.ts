import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

import { planAnswer } from '@gatehouse/tools/scripted-upstream/answer'
import { readAsk } from '@gatehouse/tools/scripted-upstream/ask'
import { protocols } from '@gatehouse/tools/scripted-upstream/protocols'

import { formats, pathOf } from './stream-call.ts'

/** An upstream that sends a piece only when it is told to: nothing that waits for more ever gets it. */
export async function startLockstep(tokens: number) {
  let wanted = 0
  let onWanted = () => {}
  const untilWanted = async (piece: number) => {
    while (wanted <= piece) await new Promise<void>((resolve) => (onWanted = resolve))
  }
  const server = createServer((request, response) => {
    const dialect = formats.find((format) => pathOf[format] === request.url) ?? 'chat'
    const answer = async () => {
      const ask = readAsk(dialect, JSON.parse(await readText(request)) as Record<string, unknown>)
      const planned = planAnswer(ask, { tokens }, '1', () => '')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      let piece = 0
      for (const { text, kind } of protocols[dialect].frames(ask, planned)) {
        if (kind === 'piece') await untilWanted(piece++)
        response.write(text)
      }
      response.end()
    }
    answer().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** From the start again. */
    begin: () => (wanted = 0),
    sendNext: () => {
      wanted++
      onWanted()
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
