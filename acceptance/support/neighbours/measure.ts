import { setTimeout as sleep } from 'node:timers/promises'

import { createTenants, type Stack } from '@gatehouse/tools/start-stack'

import { type Timing, timingOf } from '#support/baseline/ratio.ts'
import { ask } from '#support/streams/call.ts'
import { residentMegabytes } from '#support/streams/flood.ts'

import { type Attack, createAttacker } from './attack.ts'

/** How often the neighbour calls, and how many of its calls may be under way. */
const everyMs = 25

export type Measured = {
  quiet: Timing
  attacked: Timing
  /** How much more memory the process had at most than before the attack. */
  grownMegabytes: number
  /** Answers to the neighbour that were no success. */
  failures: readonly string[]
}

/** Calls of an organization that has nothing to do with the attack: first without it, then beside it, equally long. */
export async function measureNeighbour(
  stack: Stack,
  { prepare, send, name }: Attack,
  seconds: number,
): Promise<Measured> {
  const attacker = await createAttacker(stack)
  await prepare?.(attacker)
  const neighbour = await createNeighbour(stack)
  await neighbour.call(1000)
  const quiet = await neighbour.call(seconds * 1000)
  const memory = await watchMemory(stack.apis[0]?.child.pid)
  const ending = new AbortController()
  const sending = send(attacker, ending.signal)
  // The first requests of the attack have to arrive.
  await sleep(500)
  const attacked = await neighbour.call(seconds * 1000)
  ending.abort()
  await sending
  const grownMegabytes = memory.stop()
  const show = ({ p50, p99 }: Timing) => `p50 ${p50.toFixed(0)}, p99 ${p99.toFixed(0)} ms`
  console.log(
    `${name}: ${show(attacked.timing)}; quiet ${show(quiet.timing)}; memory +${grownMegabytes.toFixed(0)} MB; ` +
      `the attacker's answers ${JSON.stringify([...attacker.statuses])}`,
  )
  return {
    quiet: quiet.timing,
    attacked: attacked.timing,
    grownMegabytes,
    failures: [...quiet.failures, ...attacked.failures],
  }
}

async function createNeighbour({ service, description }: Stack) {
  const [tenant] = await createTenants(service, 1)
  const target = { baseUrl: description.base_url, credential: tenant?.project_key ?? '' }
  const request = { format: 'chat', model: 'chat-scripted', isStreamed: false } as const
  return {
    /** Calls at a steady rate, whatever becomes of the calls before: a slow answer must not hide the next one. */
    async call(forMs: number) {
      const calls = []
      for (const startedAt = performance.now(); performance.now() - startedAt < forMs;) {
        calls.push(ask(target, request))
        await sleep(everyMs)
      }
      const answers = await Promise.all(calls)
      const failed = answers.filter(({ status }) => status !== 200)
      return {
        timing: timingOf(answers.map(({ tookMs }) => tookMs)),
        failures: failed.map(({ status, text }) => `${status} ${text.slice(0, 200)}`),
      }
    },
  }
}

async function watchMemory(processId: number | undefined) {
  const before = await residentMegabytes(processId)
  let most = before
  const look = async () => {
    most = Math.max(most, await residentMegabytes(processId).catch(() => 0))
  }
  const timer = setInterval(() => void look(), 100)
  return {
    stop() {
      clearInterval(timer)
      return most - before
    },
  }
}
