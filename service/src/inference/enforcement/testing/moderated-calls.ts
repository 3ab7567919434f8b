import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

import { completion, preparePlainCalls, sendPlain, sendStream } from '#testing/plain-calls.ts'

/** A MODERATION_FILE with this content, as an environment, until the test has ended. */
export async function writeModeration(content: object): Promise<Record<string, string>> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-moderation-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'moderation.json')
  await writeFile(path, JSON.stringify(content))
  return { MODERATION_FILE: path }
}

/** A service with this moderation, in front of an upstream that answers every call in the way it was asked. */
export async function prepareModeratedCalls(moderation: object) {
  const calls = await preparePlainCalls({ environment: await writeModeration(moderation) })
  calls.upstream.behave = (response, number) =>
    calls.upstream.bodies[number - 1]?.['stream'] === true
      ? sendStream(response, 'An answer.')
      : sendPlain(response, completion('An answer.'))

  /** What comes of a call, in a word. */
  async function ask(content: string, body: object = {}): Promise<string> {
    const { status, text } = await calls.ask({ messages: [{ role: 'user', content }], ...body })
    const [code] =
      /moderation_blocked|policy_blocked|policy_evaluation_unavailable/.exec(text) ?? []
    return `${status} ${code ?? (text.includes('An answer.') ? 'answered' : text)}`
  }
  async function lastEvent() {
    const [row] = await calls.db
      .selectFrom('event')
      .select('header')
      .orderBy('seq', 'desc')
      .limit(1)
      .execute()
    return row?.header
  }
  return { calls, ask, lastEvent }
}
