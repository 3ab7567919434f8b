import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { readModeration } from './read-moderation.ts'

const scorer = {
  name: 'openai',
  adapter: 'openai',
  base_url: 'https://api.openai.com/v1',
  model: 'omni-moderation-latest',
  key: { env: 'OPENAI_API_KEY' },
}
const judge = { adapter: 'generic', base_url: 'http://judge.internal:8000', model: 'small' }
const options = { allowsTestDoubles: false, readSecret: () => 'the-secret' }
const read = (file: unknown) => readModeration(JSON.stringify(file, null, 1), options)

test('what is not said has a default', () => {
  expect(read({ scorers: [scorer], judge })).toEqual({
    scorers: [
      {
        name: 'openai',
        adapter: 'openai',
        place: {
          baseUrl: 'https://api.openai.com/v1',
          model: 'omni-moderation-latest',
          secret: 'the-secret',
        },
        snapshot: 'omni-moderation-latest',
        deadlineMs: 2000,
        grid: { steps: [48, 64, 96], overlap: 160 },
        thresholds: {
          harassment: 5000,
          hate: 5000,
          illicit: 5000,
          sexual: 5000,
          'self-harm': 4000,
          'sexual/minors': 2000,
        },
      },
    ],
    judge: {
      adapter: 'generic',
      place: { baseUrl: 'http://judge.internal:8000', model: 'small', secret: null },
      deadlineMs: 800,
      hedgeMs: 400,
      onError: 'refuse',
      calibration: null,
    },
    guardrails: [],
    rewriterModel: null,
    acceptsLocalOnly: false,
    unscoredParts: 'pass',
    degraded: 'refuse',
  })
  expect(read({})).toMatchObject({ scorers: [], judge: null, acceptsLocalOnly: false })
})

test('everything that is said counts', () => {
  const calibration = {
    version: '2026-01',
    points: [
      [0, 0],
      [0.5, 2000],
      [1, 10_000],
    ],
  }
  const settings = read({
    scorers: [
      {
        ...scorer,
        snapshot: 'omni-2024-09-26',
        deadline_ms: 900,
        thresholds: { hate: 0.71, 'self-harm': 0.3 },
      },
    ],
    judge: { ...judge, deadline_ms: 700, hedge_ms: 300, on_error: 'allow', calibration },
    rewriter: { model: 'gpt-5-mini' },
    accept_local_only: true,
    unscored_parts: 'refuse',
    degraded: 'allow',
  })
  expect(settings.scorers[0]).toMatchObject({
    snapshot: 'omni-2024-09-26',
    deadlineMs: 900,
    thresholds: { hate: 7100, 'self-harm': 3000, 'sexual/minors': 2000 },
  })
  expect(settings.judge).toMatchObject({ deadlineMs: 700, hedgeMs: 300, onError: 'allow' })
  expect(settings.judge?.calibration).toEqual(calibration)
  expect(settings).toMatchObject({
    rewriterModel: 'gpt-5-mini',
    acceptsLocalOnly: true,
    unscoredParts: 'refuse',
    degraded: 'allow',
  })
})

const withScorer = (changes: object) => ({ scorers: [{ ...scorer, ...changes }] })
const withJudge = (changes: object) => ({ judge: { ...judge, ...changes } })
/** Members of a scorer are on lines of their own: JSON.stringify puts `name` on line 4. */
test.each([
  [withScorer({ name: 'two words' }), 'line 4: scorers[0].name: must be 1 to 64 letters'],
  [withScorer({ adapter: 'magic' }), 'line 5: scorers[0].adapter: must be one of openai, llama'],
  [withScorer({ base_url: 'ftp://x' }), 'line 6: scorers[0].base_url: must be an http or https'],
  [withScorer({ base_url: undefined }), 'line 3: scorers[0].base_url: is required'],
  [withScorer({ model: undefined }), 'line 3: scorers[0].model: is required'],
  [withScorer({ model: '' }), 'line 7: scorers[0].model: must have at least 1 character'],
  [withScorer({ key: 'sk-canary' }), 'line 8: scorers[0].key: must be {"env": "VARIABLE"} or'],
  [withScorer({ key: { env: 'lower' } }), 'line 9: scorers[0].key.env: must be the name of'],
  [withScorer({ snapshot: 7 }), 'scorers[0].snapshot: must be a string'],
  [withScorer({ deadline_ms: 49 }), 'scorers[0].deadline_ms: must be at least 50'],
  [withScorer({ deadline_ms: 10_001 }), 'scorers[0].deadline_ms: must be at most 10000'],
  [withScorer({ thresholds: { hate: 1.1 } }), 'scorers[0].thresholds.hate: must be at most 1'],
  [withScorer({ thresholds: { hate: 0 } }), 'scorers[0].thresholds.hate: must be at least 0.01'],
  [withScorer({ thresholds: { 'sexual/minors': 1 } }), 'sexual/minors: must be at most 0.95'],
  [
    withScorer({ thresholds: { violence: 0.5 } }),
    "scorers[0].thresholds: has no member 'violence'",
  ],
  [
    withScorer({ adapter: 'llama_guard', thresholds: { harassment: 0.5 } }),
    "scorers[0].thresholds.harassment: is no category that 'llama_guard' scores",
  ],
  [withScorer({ timeout: 1 }), "line 3: scorers[0]: has no member 'timeout'"],
  [{ scorers: [scorer, scorer] }, 'line 13: scorers[1].name: is the name of another scorer too'],
  [{ scorers: Array(11).fill(scorer) }, 'scorers: must have at most 10 items'],
  [withJudge({ adapter: 'llama_guard' }), 'judge.adapter: must be one of generic, granite'],
  [withJudge({ hedge_ms: 800 }), 'judge.hedge_ms: must be less than deadline_ms'],
  [withJudge({ on_error: 'ignore' }), 'judge.on_error: must be one of refuse, allow'],
  [withJudge({ model: undefined }), 'judge.model: is required'],
  [
    withJudge({
      calibration: {
        version: '1',
        points: [
          [0, 5],
          [0.5, 4],
        ],
      },
    }),
    'judge.calibration.points: must rise',
  ],
  [withJudge({ calibration: { points: [[0, 0]] } }), 'judge.calibration.version: is required'],
  [{ rewriter: {} }, 'rewriter.model: is required'],
  [{ accept_local_only: 'yes' }, 'accept_local_only: must be a boolean'],
  [{ unscored_parts: 'drop' }, 'unscored_parts: must be one of pass, refuse'],
  [{ degraded: true }, 'degraded: must be one of refuse, allow'],
  [{ scorer: [] }, "line 1: the file: has no member 'scorer'"],
  [[], 'line 1: the file: must be an object'],
])('case %#: a member that is wrong is named, with its line', (file, message) => {
  expect(() => read(file)).toThrow(message)
})

test('one error lists everything that is wrong, and quotes no value', () => {
  const file = { scorers: [{ ...scorer, key: 'sk-canary', deadline_ms: 'sk-canary' }], degraded: 1 }
  const message = messageOf(() => read(file))
  expect(message.split('\n')).toHaveLength(3)
  expect(message).not.toContain('canary')
})

test('what is not JSON, and a member that is given twice, are named by their line', () => {
  const broken = '{\n  "scorers": [],\n  "degraded": refuse\n}'
  expect(() => readModeration(broken, options)).toThrow('line 3, column 15: it is not JSON')
  const twice = '{\n  "degraded": "refuse",\n  "degraded": "allow"\n}'
  expect(() => readModeration(twice, options)).toThrow('line 3: degraded: is given twice')
})

test('a key that cannot be read is a problem of its member', () => {
  const readSecret = () => {
    throw new Error('the environment variable OPENAI_API_KEY is not set')
  }
  const text = JSON.stringify({ scorers: [scorer], judge: { ...judge, key: { file: '/k' } } })
  expect(messageOf(() => readModeration(text, { ...options, readSecret }))).toBe(
    '  scorers[0].key: the environment variable OPENAI_API_KEY is not set\n' +
      '  judge.key: the environment variable OPENAI_API_KEY is not set',
  )
})

test('scripted scorers and judges need permission, and have no address', () => {
  const file = { scorers: [{ name: 's', adapter: 'scripted' }], judge: { adapter: 'scripted' } }
  expect(messageOf(() => read(file))).toBe(
    "  line 5: scorers[0].adapter: 'scripted' needs ALLOW_TEST_DOUBLES=true\n" +
      "  line 9: judge.adapter: 'scripted' needs ALLOW_TEST_DOUBLES=true",
  )
  const allowed = { ...options, allowsTestDoubles: true }
  expect(readModeration(JSON.stringify(file), allowed).scorers[0]?.place).toBeNull()
  const placed = JSON.stringify({ scorers: [{ ...scorer, adapter: 'scripted' }] })
  expect(() => readModeration(placed, allowed)).toThrow("base_url: has no meaning for 'scripted'")
})

test('every example of docs/moderation.md can be used', () => {
  const page = readFileSync(new URL('../../../docs/moderation.md', import.meta.url), 'utf8')
  const examples = [...page.matchAll(/```json\n([^]*?)```/g)].map(([, text = '']) => text)
  const settings = examples.map((text) => readModeration(text, options))
  expect(settings.map(({ scorers }) => scorers.map(({ adapter }) => adapter))).toEqual([
    ['openai'],
    ['llama_guard', 'shieldgemma'],
    [],
    ['openai'],
    [],
  ])
  expect(settings[2]?.acceptsLocalOnly).toBe(true)
  expect(settings[3]?.judge?.adapter).toBe('generic')
  expect(settings[4]?.rewriterModel).toBe('small-chat')
})

function messageOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('nothing was thrown')
}

const guardrail = { name: 'house', url: 'http://guardrail.internal:8080/decide?v=1' }
const webhookSecret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

test('guardrails only monitor, and refuse what they fail at, unless they say otherwise', () => {
  const usual = { id: null, url: guardrail.url, secret: null, deadlineMs: 2000 } as const
  expect(read({ guardrails: [guardrail] }).guardrails).toEqual([
    { ...usual, name: 'house', mode: 'monitoring', onError: 'refuse' },
  ])
  const own = { ...guardrail, mode: 'enforcing', on_error: 'allow', deadline_ms: 300 }
  const file = JSON.stringify({ guardrails: [{ ...own, key: { env: 'GUARDRAIL_SECRET' } }] })
  const { guardrails } = readModeration(file, { ...options, readSecret: () => webhookSecret })
  expect(guardrails).toEqual([
    {
      ...usual,
      name: 'house',
      mode: 'enforcing',
      onError: 'allow',
      deadlineMs: 300,
      secret: webhookSecret,
    },
  ])
})

test.each([
  [{ name: 'a b' }, 'guardrails[0].name: must be'],
  [{ url: 'ftp://a' }, 'guardrails[0].url: must be an http or https address'],
  [{ url: 'https://user:word@a' }, 'guardrails[0].url: must not have a user name'],
  [{ url: undefined }, 'guardrails[0].url: is required'],
  [{ mode: 'off' }, 'guardrails[0].mode: must be one of monitoring, enforcing'],
  [{ on_error: 'ignore' }, 'guardrails[0].on_error: must be one of refuse, allow'],
  [{ deadline_ms: 10 }, 'guardrails[0].deadline_ms: must'],
  [{ key: { env: 'GUARDRAIL_SECRET' } }, 'guardrails[0].key: must be whsec_ and the base64'],
  [{ secret: webhookSecret }, "guardrails[0]: has no member 'secret'"],
])('a guardrail with %j is refused', (changes, problem) => {
  const reading = () => read({ guardrails: [{ ...guardrail, ...changes }] })
  expect(reading).toThrow(problem)
  expect(reading).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining('the-secret') }),
  )
})

test('two guardrails have different names, and there are at most five', () => {
  expect(() => read({ guardrails: [guardrail, guardrail] })).toThrow(
    'guardrails[1].name: is the name of another guardrail too',
  )
  const six = Array.from({ length: 6 }, (_, index) => ({ ...guardrail, name: `house-${index}` }))
  expect(() => read({ guardrails: six })).toThrow('guardrails: must')
})
