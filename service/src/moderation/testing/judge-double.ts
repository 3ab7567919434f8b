import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** What the tests look at of a chat completion that was asked for. */
export type ChatRequest = {
  model: string
  messages: { role: string; content: string }[]
  max_tokens: number
  response_format?: unknown
  logprobs?: boolean
  chat_template_kwargs?: { guardian_config: { custom_criteria: string }; think: boolean }
}

/** How the double answers a request. */
export type Behaviour = (request: ChatRequest, response: ServerResponse) => void | Promise<void>

/**
 * A server that speaks Chat Completions as a judge does. Its first behaviour answers the first request, and so on; the last
 * answers all others.
 */
export async function createJudgeDouble() {
  let behaviours: Behaviour[] = []
  const requests: ChatRequest[] = []
  let open = 0
  let mostOpen = 0

  async function answer(request: IncomingMessage, response: ServerResponse) {
    mostOpen = Math.max(mostOpen, ++open)
    response.once('close', () => open--)
    const body = JSON.parse(await text(request)) as ChatRequest
    requests.push(body)
    const behaviour = behaviours[Math.min(requests.length, behaviours.length) - 1]
    await behaviour?.(body, response)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`

  return {
    requests,
    baseUrl: url.replace('/chat/completions', ''),
    get open() {
      return open
    },
    get mostOpen() {
      return mostOpen
    },
    /** Forgets what was asked before. */
    become(...next: Behaviour[]) {
      behaviours = next
      requests.length = 0
      mostOpen = open
    },
    async post(body: object, signal: AbortSignal) {
      const headers = { 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body), signal }
      const response = await fetch(url, init)
      return { status: response.status, body: await response.text() }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
export type JudgeDouble = Awaited<ReturnType<typeof createJudgeDouble>>

type Token = { token: string; logprob: number; top_logprobs?: { token: string; logprob: number }[] }

/** A chat completion with this content. */
export const writes =
  (
    content: string | null,
    { tokens, finish = 'stop' }: { tokens?: Token[]; finish?: string } = {},
  ): Behaviour =>
  (request, response) =>
    sends(200, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: request.model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content },
          finish_reason: finish,
          logprobs: tokens ? { content: tokens } : null,
        },
      ],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    })(request, response)

export const sends =
  (status: number, body: unknown): Behaviour =>
  (_, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify(body))

export const fails = (status: number) =>
  sends(status, { error: { message: 'canary-of-the-judge' } })

export const says =
  (raw: string): Behaviour =>
  (_, response) =>
    void response.writeHead(200).end(raw)

export const staysSilent: Behaviour = () => {}
export const hangsUp: Behaviour = (_, response) => void response.destroy()

/** The head promises more than comes. */
export const breaksOff: Behaviour = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
  response.write('{"choices":[', () => response.destroy())
}

/** A model that reads the prompt as it is meant, line by line: per rule the likelihood of a match in percent. */
export const judges =
  (likelihood: (rule: string, content: string, rules: number) => number): Behaviour =>
  (request, response) => {
    const { rules, content } = readPrompt(request)
    const v = rules.map((rule, index) => {
      const p = likelihood(rule, content, rules.length)
      return { i: index + 1, m: p >= 50 ? 1 : 0, p }
    })
    return writes(JSON.stringify({ v }))(request, response)
  }

/** What a careful reader finds in a prompt. Throws if the markers are not where they belong. */
export function readPrompt({ messages }: ChatRequest) {
  const [system, user] = messages
  const blocks = [...system!.content.matchAll(/^RULE \d+\n((?:\d+\| .*\n?)+)/gm)]
  const rules = blocks.map(([, block = '']) => block.trimEnd().replaceAll(/^\d+\| /gm, ''))
  const lines = user!.content.split(/[\n\r\u0085\u2028\u2029]/)
  const [, nonce] = /^BEGIN CONTENT ([0-9a-f]{32})$/.exec(lines.at(-3) ?? '') ?? []
  if (!nonce || lines.at(-1) !== `END CONTENT ${nonce}`) throw new Error('The markers are wrong.')
  const [, context = '""'] = lines[1] === `BEGIN CONTEXT ${nonce}` ? lines.slice(1) : []
  if (lines.length !== (lines[1]?.startsWith('BEGIN CONTEXT') ? 7 : 4))
    throw new Error('There are lines that do not belong there.')
  return {
    rules,
    direction: lines[0],
    context: JSON.parse(context) as string,
    content: JSON.parse(lines.at(-2)!) as string,
    nonce,
  }
}
