import type { Format } from '#support/streams/call.ts'

type Body = {
  content?: { text?: string }[]
  choices?: { message?: { content?: string | null } }[]
  output?: { content?: { text?: string }[] }[]
}

/** The text of a plain answer; empty where it has none, as an error. */
export function plainTextOf(format: Format, answer: string): string {
  const { content, choices, output } = JSON.parse(answer) as Body
  const texts = {
    messages: () => content?.map(({ text = '' }) => text),
    chat: () => choices?.map(({ message }) => message?.content ?? ''),
    responses: () => output?.flatMap((item) => item.content?.map(({ text = '' }) => text) ?? []),
  }
  return texts[format]()?.join('') ?? ''
}
