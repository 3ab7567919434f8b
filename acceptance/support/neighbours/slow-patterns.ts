import { createClient } from '@gatehouse/contract/client'
import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'

import { type Attack, repeatAtOnce, toPayload } from './attack.ts'

const patterns = Array.from(
  { length: 32 },
  (_, index) => `text.matches("alpha.{0,${40 + index}}omega")`,
)

/**
 * Patterns that are accepted one by one, and slow together. Each is far from what is refused: on a busy machine it may be measured
 * as slower than it is.
 */
export const slowRule = `cel: ${patterns.join(' || ')}`

const words = ['alpha', 'lo', 'a', 'of']
const pickWord = () => words[Math.floor(Math.random() * words.length)] ?? ''
const gap = 'lo a of '.repeat(20)

/**
 * Each `alpha` may begin a match of every pattern, and none is completed, because every `omega` comes too late. The words differ
 * each time, because the pattern engine caches the states it has visited.
 */
export function writeHostile(): string {
  let text = ''
  while (text.length < 8000) {
    const some = Array.from({ length: 200 }, pickWord).join(' ')
    text += `omega ${some} ${gap}`
  }
  return text
}

/** Texts that are hard for the organization's own patterns. */
export const slowPatterns: Attack = {
  name: 'texts of 8 KB that are hard for 32 patterns of a monitoring policy',
  async prepare({ baseUrl, adminKey }) {
    const client = createClient({ baseUrl, credential: adminKey })
    const { id, revision } = await client.call(createPolicy, {
      body: { name: 'Slow', rule: slowRule, mode: 'monitoring', scope: 'organization' },
    })
    await client.call(publishPolicy, {
      params: { policy_id: id },
      query: { wait: 'applied' },
      body: { revision },
    })
  },
  async send({ post }, until) {
    await repeatAtOnce(4, until, () => {
      const messages = [{ role: 'user', content: writeHostile() }]
      return post(
        '/v1/messages/count_tokens',
        toPayload({ model: 'chat-scripted', messages }),
        until,
      )
    })
  },
}
