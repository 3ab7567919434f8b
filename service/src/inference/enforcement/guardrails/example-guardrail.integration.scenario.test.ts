import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { everyWay, isCounting, openEveryWay } from '#inference/enforcement/testing/every-way.ts'
import { writeModeration } from '#inference/enforcement/testing/moderated-calls.ts'
import { received, textOf } from '#inference/enforcement/testing/open-redacting.ts'
import { guardrailSecret } from '#moderation/testing/guardrail-double.ts'

// The example of docs/guardrails.md, as its readers copy it.

const page = new URL('../../../../../docs/guardrails.md', import.meta.url)

/** Runs the program of the page; returns its port. */
async function startExample(secret: string): Promise<number> {
  const [, program = ''] = /```js\n([^]*?)```/.exec(await readFile(page, 'utf8')) ?? []
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-guardrail-'))
  const path = join(folder, 'guardrail.mjs')
  await writeFile(path, program)
  const child = spawn(process.execPath, [path], {
    env: { GUARDRAIL_SECRET: secret, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    child.kill()
    await rm(folder, { recursive: true })
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return Number(/^port (\d+)/.exec(line.toString())?.[1])
}

async function open(secret = guardrailSecret) {
  const port = await startExample(secret)
  const guardrail = {
    name: 'house',
    url: `http://127.0.0.1:${port}/`,
    key: { env: 'GUARDRAIL_SECRET' },
    mode: 'enforcing',
  }
  return openEveryWay({
    ...(await writeModeration({ accept_local_only: true, guardrails: [guardrail] })),
    GUARDRAIL_SECRET: guardrailSecret,
  })
}

const ways = everyWay.filter(
  ({ endpoint, caller, shape }) =>
    caller === 'key' && !isCounting(endpoint) && shape === 'streamed',
)

test('the example blocks a name and replaces numbers, in requests and answers', async () => {
  const every = await open()
  for (const way of ways) {
    const blocked = await every.send(way, { asked: 'Is ACME better?' })
    expect(blocked.body).toContain('Acme is not to be mentioned.')
    const answer = await every.send(way, { asked: 'I am 😀 555-1234.', answered: 'Call 555-9876.' })
    expect(await received(every)).toContain('I am 😀 [PHONE].')
    expect(textOf(answer.body)).toContain('Call [PHONE].')
    expect(answer.body).not.toContain('555-9876')
    const cut = await every.send(way, { answered: 'Ask Acme instead.' })
    expect(cut.body).toContain('does not allow this answer')
    expect(cut.body).not.toContain('Ask Acme')
  }
})

test('it decides about nothing that is signed by another secret', async () => {
  const every = await open(`whsec_${Buffer.alloc(24, 1).toString('base64')}`)
  const { statusCode, body } = await every.send(ways[0]!)
  expect(statusCode).toBe(503)
  expect(body).toContain('An administrator has to correct it.')
})
