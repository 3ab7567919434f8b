import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

import { planAnswer } from '@gatehouse/tools/scripted-upstream/answer'
import { readAsk } from '@gatehouse/tools/scripted-upstream/ask'
import { protocols } from '@gatehouse/tools/scripted-upstream/formats/protocols'
import { findScript } from '@gatehouse/tools/scripted-upstream/script'

import { formats, pathOf } from './call.ts'

/**
 * An upstream that sends each piece only when the test calls `sendNext`: a gateway that buffers would hang. What it says is
 * in the script of the prompt; without one it says this many words.
 */
export async function startLockstep(tokens: number) {
  let wanted = 0
  let waiting: (() => void)[] = []
  const untilWanted = async (piece: number) => {
    while (wanted <= piece) await new Promise<void>((resolve) => waiting.push(resolve))
  }
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0]
    const dialect = formats.find((format) => pathOf[format] === path) ?? 'chat'
    const answer = async () => {
      const ask = readAsk(dialect, JSON.parse(await readText(request)) as Record<string, unknown>)
      const script = findScript(ask.lastText)
      const isScripted = Object.keys(script).length > 0
      const planned = planAnswer(ask, isScripted ? script : { tokens }, '1', () => '')
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
    /** Makes later calls wait for their first piece again. */
    restart: () => (wanted = 0),
    /** Lets every open call send one more piece. */
    sendNext: () => {
      wanted++
      for (const resume of waiting) resume()
      waiting = []
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
