import { setTimeout as sleep } from 'node:timers/promises'

import { messageOf, type PlannedCall } from './credit-calls.ts'
import { beginRaw, type Heard } from './stream-call.ts'

// Clients who call one after the other, each in its own lane, and write down what they were told.

/** What a client knows of its call. */
export type ToldCall = {
  organizationId: string
  model: string
  /** As the head of the answer says; a call that broke before has none. */
  requestId: string | null
  /** 0: nothing came. */
  status: number
  code: string | null
  isStreamed: boolean
  hungUp: boolean
  isWhole: boolean
  /** What it has cost, if the client was told. */
  told: { credits: number; remaining: number | null } | null
}

type Load = {
  lanes: number
  plan(): PlannedCall
  /** Where to call now, if anywhere: processes come and go. */
  pickProcess(): string | undefined
  isOver(): boolean
}

const pauseMs = 20
/** Whoever was refused waits a little longer. */
const refusedPauseMs = 200
/** All lanes together, whatever the machine could do: how many calls there are follows from the time alone. */
const callsPerSecond = 30

/** Calls until it is over, and waits for the last answers. */
export async function runLoad({ lanes, plan, pickProcess, isOver }: Load) {
  const log: ToldCall[] = []
  const startedAtMs = performance.now()
  let begun = 0
  const untilItsTurn = () => {
    const dueAtMs = startedAtMs + (begun++ * 1000) / callsPerSecond
    return sleep(Math.max(0, dueAtMs - performance.now()))
  }
  const lane = async () => {
    while (!isOver()) {
      await untilItsTurn()
      const baseUrl = pickProcess()
      const told = baseUrl === undefined ? undefined : await callOnce(plan(), baseUrl)
      if (told) log.push(told)
      await sleep(told?.status === 200 ? pauseMs : refusedPauseMs)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return log
}

async function callOnce(planned: PlannedCall, baseUrl: string): Promise<ToldCall> {
  const { organization, model, isStreamed, hangsUpAtMs } = planned
  const call = beginRaw({ baseUrl, credential: organization.key }, messageOf(planned))
  let hungUp = false
  const timer = setTimeout(() => {
    hungUp = true
    call.hangUp()
  }, hangsUpAtMs ?? 60_000)
  const heard = await call.heard.catch(() => undefined)
  clearTimeout(timer)
  return { organizationId: organization.id, model, isStreamed, hungUp, ...understand(heard) }
}

const numberIn = (text: string, member: string) =>
  new RegExp(`"${member}": ?(\\d+|null)`).exec(text)?.[1]

function understand(heard: Heard | undefined) {
  if (!heard) return { requestId: null, status: 0, code: null, isWhole: false, told: null }
  const { status, headers, text, isBroken } = heard
  const credits = numberIn(text, 'estimated_credits_used')
  const remaining = numberIn(text, 'remaining_credits')
  return {
    ...{ requestId: headers['x-request-id'] ?? null, status, isWhole: !isBroken },
    code: /"code": ?"(\w+)"/.exec(text)?.[1] ?? null,
    told:
      credits === undefined
        ? null
        : { credits: Number(credits), remaining: toNumber(remaining ?? 'null') },
  }
}

const toNumber = (text: string) => (text === 'null' ? null : Number(text))
