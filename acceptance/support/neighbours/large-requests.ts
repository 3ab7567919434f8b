import { type Attack, repeatAtOnce, toPayload } from './attack.ts'

const list = <Item>(length: number, item: (index: number) => Item) =>
  Array.from({ length }, (_, index) => item(index))

/** Looks like personal data at every place, and nearly none of it is. */
const almostPersonal = '4111 1111 1111 111 a.b.c.d.e@f jane.doe@example +1 555 '

/** Characters. Longer texts are refused before anything is done with them. */
const longestJudged = 3_900_000

const count = '/v1/messages/count_tokens'
/** Its tokens are counted by the process itself: the upstream runs beside the neighbour, and would slow it down. */
const asked = { model: 'chat-scripted' }

/** Large texts with redaction, to the endpoint that costs nothing. */
export const redactedTexts: Attack = {
  name: '8 texts of 3.9 MB at once to the counter of tokens, redacted',
  prepare: (attacker) => attacker.configure({ rules: { redact: true, denylist: ['zzzz'] } }),
  async send({ post }, until) {
    const content = almostPersonal.repeat(Math.floor(longestJudged / almostPersonal.length))
    const payload = toPayload({ ...asked, messages: [{ role: 'user', content }] })
    await repeatAtOnce(8, until, () => post(count, payload, until))
  },
}

/** About as many as a body may have values. */
export const functionCalls: Attack = {
  name: '6,000 function calls and their results in one request',
  async send({ post }, until) {
    const messages = list(6000, (index) => [
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: `c${index}`, name: 'f', input: { a: 'b' } }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: `c${index}`, content: 'r'.repeat(60) }],
      },
    ]).flat()
    const payload = toPayload({ ...asked, messages: [{ role: 'user', content: 'a' }, ...messages] })
    await repeatAtOnce(2, until, () => post(count, payload, until))
  },
}

export const manyTools: Attack = {
  name: '12,000 tools in one request',
  async send({ post }, until) {
    const tools = list(12_000, (index) => ({
      name: `t${index}`,
      input_schema: { type: 'object' },
    }))
    const payload = toPayload({ ...asked, messages: [{ role: 'user', content: 'a' }], tools })
    await repeatAtOnce(2, until, () => post(count, payload, until))
  },
}

export const shortTexts: Attack = {
  name: '8,000 short texts in one request',
  async send({ post }, until) {
    await repeatAtOnce(2, until, () => {
      const content = list(8000, () => ({
        type: 'text',
        text: Math.random().toString(36).slice(2, 8),
      }))
      return post(count, toPayload({ ...asked, messages: [{ role: 'user', content }] }), until)
    })
  },
}
