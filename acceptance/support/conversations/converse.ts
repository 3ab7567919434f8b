import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { expect } from 'vitest'

import { anthropic } from '#support/sdk/anthropic.ts'
import type { Answer, Connection, Conversation, RequestOptions } from '#support/sdk/caller.ts'
import { openaiChat } from '#support/sdk/openai-chat.ts'
import { openaiResponses } from '#support/sdk/openai-responses.ts'
import type { Target } from '#support/streams/call.ts'

import type { Plan, PlannedTurn } from './plan.ts'

const sdks = { messages: anthropic, chat: openaiChat, responses: openaiResponses } as const

/**
 * Holds a planned conversation as the official client of its format does, which sends everything back as it got it. Throws
 * where a turn fails, or where its answer is not the planned one.
 */
export function openConversation(plan: Plan, target: Target) {
  const { baseUrl, credential: key } = target
  const connection: Connection = { baseUrl, key, model: plan.model, isStreamed: false }
  const client = sdks[plan.format]
  const conversation = client.open(connection)
  let last: Answer | undefined

  async function take(turn: PlannedTurn, number: number) {
    connection.isStreamed = turn.isStreamed
    const options = {
      system: 'Be brief, and speak of no project',
      hasTools: true,
      isThinking: plan.isThinking,
      isStructured: turn.kind === 'json',
    }
    try {
      last = await send(conversation, last, { turn, options })
    } catch (error) {
      const { status, message } = client.describeError(error)
      const which = `${plan.id}, ${plan.format}, ${plan.model}, turn ${number}, ${turn.kind}`
      const way = turn.isStreamed ? 'streamed' : 'plain'
      throw new Error(`${which}, ${way}: ${status} ${message}`, { cause: error })
    }
    expectPlanned(last, turn)
  }

  return {
    take,
    /** From now on another process is called. */
    moveTo(next: string) {
      connection.baseUrl = next
    },
  }
}

type Sending = { turn: PlannedTurn; options: RequestOptions }

/** Tools that were called answer; otherwise the user speaks. */
function send(conversation: Conversation, last: Answer | undefined, { turn, options }: Sending) {
  const said = `${turn.asked}\n${hiddenScript(turn.script)}`
  const calls = last?.calls ?? []
  if (calls.length === 0) return conversation.sendMessage(said, options)
  const results = calls.map(({ id, name }, index) => ({
    id,
    name,
    output: index === 0 ? said : turn.asked,
  }))
  return conversation.sendToolResults(results, options)
}

function expectPlanned(answer: Answer, { script }: PlannedTurn) {
  const { text = '', toolCalls = [] } = script
  expect(answer.text).toBe(text)
  expect(answer.calls.map(({ name, input }) => ({ name, arguments: input }))).toEqual(toolCalls)
}
