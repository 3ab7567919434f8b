import { Agent, request } from 'node:http'

import { bodyOf, findDefect, type Mode, path } from '../chat-call.ts'
import { headerSets } from '../header-sets.ts'
import type { Target } from '../targets/target.ts'

let turn = 0

/** Sends so many calls, a fixed number at a time, and checks every answer. */
export async function sendCalls(target: Target, mode: Mode, count: number, atOnce: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  const sets = headerSets(target)
  let left = count
  const keepCalling = async () => {
    while (left-- > 0) {
      const { status, body } = await send(target.url, sets[turn++ % sets.length] ?? {}, mode, agent)
      const defect = findDefect(mode, status, body)
      if (defect) throw new Error(`${target.name} returned ${defect}.`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, keepCalling))
  agent.destroy()
}

type Answer = { status: number; body: string }

function send(
  url: string,
  headers: Record<string, string>,
  mode: Mode,
  agent: Agent,
): Promise<Answer> {
  const body = bodyOf(mode)
  const sized = { ...headers, 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const call = request(url + path, { method: 'POST', agent, headers: sized }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: text }))
      answer.once('error', reject)
    })
    call.setTimeout(10_000, () => call.destroy(new Error('An answer took over ten seconds.')))
    call.once('error', reject).end(body)
  })
}
