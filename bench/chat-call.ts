// The one call that every target is asked: the same bytes, but for the credential.

export type Mode = 'plain' | 'stream'

export const modes = ['plain', 'stream'] as const satisfies readonly Mode[]
export const path = '/v1/chat/completions'

const frames = 30
const script = JSON.stringify({ tokens: frames })
const question = `What did you see this morning? Answer in a sentence or two.\n#script ${script}`

export function bodyOf(mode: Mode): string {
  return JSON.stringify({
    model: 'gpt-scripted',
    messages: [{ role: 'user', content: question }],
    max_completion_tokens: 64,
    ...(mode === 'stream' && { stream: true, stream_options: { include_usage: true } }),
  })
}

type Said = { text: string; pieces: number; outputTokens: number | undefined }

type Completion = {
  choices?: { message?: { content?: string }; delta?: { content?: string } }[]
  usage?: { completion_tokens?: number } | null
}

/** What is wrong with an answer, or nothing. */
export function whyWrong(mode: Mode, status: number, body: string): string | undefined {
  if (status !== 200) return `the status ${status} with ${body.slice(0, 200)}`
  const said = mode === 'stream' ? readStream(body) : readPlain(body)
  const words = said?.text.split(' ').length
  if (!said || words !== frames) return `an answer of ${words} words: ${body.slice(0, 200)}`
  if (said.outputTokens !== frames) return `an answer that counts ${said.outputTokens} tokens`
  if (mode === 'stream' && said.pieces !== frames) return `a stream of ${said.pieces} pieces`
  return undefined
}

function readPlain(body: string): Said {
  const { choices, usage } = JSON.parse(body) as Completion
  const text = choices?.[0]?.message?.content ?? ''
  return { text, pieces: 1, outputTokens: usage?.completion_tokens }
}

/** Nothing when the stream was cut off. */
function readStream(body: string): Said | undefined {
  const lines = body.split('\n').filter((line) => line.startsWith('data: '))
  if (lines.pop() !== 'data: [DONE]') return undefined
  const said: Said = { text: '', pieces: 0, outputTokens: undefined }
  for (const line of lines) {
    const { choices, usage } = JSON.parse(line.slice(6)) as Completion
    const piece = choices?.[0]?.delta?.content
    if (piece) said.pieces++
    said.text += piece ?? ''
    said.outputTokens = usage?.completion_tokens ?? said.outputTokens
  }
  return said
}
