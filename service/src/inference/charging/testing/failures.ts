import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  breaksOff,
  fails,
  hangsUp,
  type JudgeDouble,
  staysSilent,
  writes,
} from '#moderation/testing/judge-double.ts'
import type { createScorerDouble } from '#moderation/testing/scorer-double.ts'

/** Who causes a failure, in the model that the service is compared with. `none`: nothing fails. */
type CausedBy = 'caller' | 'gateway or provider' | 'none'

type ScorerDouble = Awaited<ReturnType<typeof createScorerDouble>>

/** What a failure can get at when its time has come, in the middle of an answer. */
type Stage = {
  scorer: ScorerDouble
  judge: JudgeDouble
  response: ServerResponse
  hangUp(): void
}

export type Failure = {
  name: string
  causedBy: CausedBy
  /** Returns whether the upstream goes on writing; absent: nothing happens. */
  begin?: (stage: Stage) => Promise<boolean>
  /** Only where a rule needs the whole answer, which is then too long for the judge. */
  isTooLong?: boolean
  /** Only where the upstream streams. */
  isOfStreams?: boolean
}

const others = 'gateway or provider'

/** It begins, and the upstream goes on. */
const from =
  (change: (stage: Stage) => unknown) =>
  async (stage: Stage): Promise<boolean> => {
    change(stage)
    return true
  }
const insteadOf =
  (change: (stage: Stage) => unknown) =>
  async (stage: Stage): Promise<boolean> => {
    await change(stage)
    return false
  }

const upstreamFailures: readonly Failure[] = [
  {
    name: 'upstream breaks off',
    causedBy: others,
    begin: insteadOf(({ response }) => response.destroy()),
  },
  {
    name: 'upstream sends nonsense',
    causedBy: others,
    begin: insteadOf(({ response }) => response.end('data: {"choices":[{\n\n')),
  },
  {
    name: 'upstream reports an error',
    causedBy: others,
    begin: insteadOf(({ response }) =>
      response.end('data: {"error":{"message":"It failed.","type":"server_error"}}\n\n'),
    ),
  },
  {
    name: 'upstream stands still',
    causedBy: others,
    isOfStreams: true,
    begin: insteadOf(({ response }) => sleep(3000).then(() => response.destroy())),
  },
]

const scorerFailures: readonly Failure[] = [
  ...(['hangs', 'hangs up', 'stops within its answer', 429, 500, 401] as const).map(
    (behaviour): Failure => ({
      name: `scorer: ${behaviour}`,
      causedBy: others,
      begin: from(({ scorer }) => scorer.become(behaviour)),
    }),
  ),
  ...(['answers half of its JSON', 'answers for other texts', 400] as const).map(
    (behaviour): Failure => ({
      name: `scorer: ${behaviour}`,
      causedBy: 'caller',
      begin: from(({ scorer }) => scorer.become(behaviour)),
    }),
  ),
]

const judgeFailures: readonly Failure[] = [
  ...(
    [
      ['is silent', staysSilent],
      ['hangs up', hangsUp],
      ['breaks off', breaksOff],
      ['answers 429', fails(429)],
      ['answers 500', fails(500)],
      ['answers 401', fails(401)],
    ] as const
  ).map(([name, behaviour]): Failure => ({
    name: `judge: ${name}`,
    causedBy: others,
    begin: from(({ judge }) => judge.become(behaviour)),
  })),
  ...(
    [
      ['judges nothing', writes('{"v":[]}')],
      ['was talked into another form', writes('No rule applies here.')],
    ] as const
  ).map(([name, behaviour]): Failure => ({
    name: `judge: ${name}`,
    causedBy: 'caller',
    begin: from(({ judge }) => judge.become(behaviour)),
  })),
  { name: 'judge: too long', causedBy: 'caller', isTooLong: true },
]

/** Each call meets one of them, at some word of its answer. */
export const failures: readonly Failure[] = [
  ...upstreamFailures,
  ...scorerFailures,
  ...judgeFailures,
  { name: 'caller hangs up', causedBy: 'caller', begin: from(({ hangUp }) => hangUp()) },
  { name: 'nothing fails', causedBy: 'none' },
]
