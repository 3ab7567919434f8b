import type { Format } from './call.ts'

// Conversations that a test writes itself, in any format.

/** A message; several texts are its parts. */
export type Said = { role: 'system' | 'user' | 'assistant'; content: string | readonly string[] }

/** The model of a stack whose upstream speaks the format itself. */
export const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

type Written = { format: Format; said: readonly Said[]; model?: string; isStreamed?: boolean }

/** The body of a request that says this. */
export function bodyThatSays({ format, said, model = modelOf[format], isStreamed }: Written) {
  const [instructions, others] = [said.filter(isSystem), said.filter((each) => !isSystem(each))]
  const stream = isStreamed && { stream: true }
  switch (format) {
    case 'messages': {
      const system = instructions
        .flatMap(({ content }) => content)
        .map((text) => ({ type: 'text', text }))
      const messages = others.map((each) => toMessage(each, 'text'))
      const told = system.length > 0 && { system }
      return { model, max_tokens: 500, ...told, messages, ...stream }
    }
    case 'chat':
      return { model, messages: said.map((each) => toMessage(each, 'text')), ...stream }
    case 'responses': {
      const input = said.map((each) =>
        toMessage(each, each.role === 'assistant' ? 'output_text' : 'input_text'),
      )
      return { model, input, ...stream }
    }
  }
}

const isSystem = ({ role }: Said) => role === 'system'

const toMessage = ({ role, content }: Said, type: string) => ({
  role,
  content: typeof content === 'string' ? content : content.map((text) => ({ type, text })),
})
