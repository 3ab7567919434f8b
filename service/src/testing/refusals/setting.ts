import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { createJudgeDouble, judges, readPrompt, writes } from '#moderation/testing/judge-double.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'

// What the operator and the organization have decided about all calls.

/** The configuration of the organization and the moderation of the gateway. */
export type Setting = {
  /** What becomes of a request with a denied term or a flagged category. */
  action: 'refuse' | 'escalate'
  /** Whether what nothing can score is refused. */
  isStrict: boolean
  /** Whether the operator has accepted that only the local scorer looks for what is always blocked. */
  isLocalAccepted: boolean
  hasJudge: boolean
  /** Whether the organization has had models asked too many questions. */
  isOverQuestions: boolean
  isSuspended: boolean
}

/** In these words texts say themselves what the scorers and the judge find in them. */
export const marks = {
  hate: 'zzhate',
  illicit: 'zzillicit',
  sexual: 'zzflagged',
  unkind: 'zzunkind',
  impolite: 'zzimpolite',
  brokenScorer: 'zzbroken',
  unsureJudge: 'zzunsure',
} as const

/** A judge that is right about its two rules, and gives no verdict on a marked text. */
export async function startJudge() {
  const judge = await createJudgeDouble()
  const finds = judges((rule, content) =>
    content.includes(rule.startsWith('Be kind') ? marks.unkind : marks.impolite) ? 97 : 3,
  )
  judge.become((request, response) =>
    readPrompt(request).content.includes(marks.unsureJudge)
      ? writes('{"v":[]}')(request, response)
      : finds(request, response),
  )
  return judge
}

/** Two guard models behind one address: Granite, and ShieldGemma, which alone covers harassment. */
export const startScorers = () =>
  createScorerDouble(({ body }) => {
    const asked = body as unknown as Asked
    return 'prompt' in asked ? answerAsShieldGemma(asked) : answerAsGranite(asked)
  })

type Asked =
  | { prompt: string }
  | {
      messages: readonly { content: string }[]
      chat_template_kwargs: { guardian_config: { criteria_id: string } }
    }

const answerAsShieldGemma = ({ prompt }: Extract<Asked, { prompt: string }>) =>
  prompt.includes(marks.brokenScorer)
    ? { choices: [] }
    : { choices: [{ logprobs: { top_logprobs: [{ Yes: -9, No: -0.001 }] } }] }

const markOf: Readonly<Record<string, string>> = {
  social_bias: marks.hate,
  sexual_content: marks.sexual,
  unethical_behavior: marks.illicit,
}

function answerAsGranite(asked: Exclude<Asked, { prompt: string }>) {
  const mark = markOf[asked.chat_template_kwargs.guardian_config.criteria_id]
  const isFound = mark !== undefined && JSON.stringify(asked.messages).includes(mark)
  const [token, other] = isFound ? ['yes', 'no'] : ['no', 'yes']
  const top_logprobs = [
    { token, logprob: -0.001 },
    { token: other, logprob: -9 },
  ]
  const content = [
    { token: '<score> ', logprob: 0 },
    { token, logprob: -0.001, top_logprobs },
    { token: ' </score>', logprob: 0 },
  ]
  return {
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: `<score> ${token} </score>` },
        finish_reason: 'stop',
        logprobs: { content },
      },
    ],
  }
}

type Places = {
  folder: string
  scorers: { baseUrl: string }
  judge: { baseUrl: string }
}

/** Patient, because the machine of the test may be slow. */
const patient = { deadline_ms: 10_000 }

export const moderationFileIn = (folder: string) => join(folder, 'moderation.json')

export async function writeModerationFile(
  { folder, scorers, judge }: Places,
  { isLocalAccepted, hasJudge }: Setting,
) {
  const at = (base_url: string, model: string) => ({ base_url, model, ...patient })
  const content = {
    scorers: [
      { name: 'granite', adapter: 'granite', ...at(scorers.baseUrl, 'granite') },
      { name: 'shieldgemma', adapter: 'shieldgemma', ...at(scorers.baseUrl, 'shieldgemma') },
    ],
    accept_local_only: isLocalAccepted,
    ...(hasJudge && {
      judge: { adapter: 'generic', hedge_ms: 9000, ...at(judge.baseUrl, 'judge') },
    }),
  }
  await writeFile(moderationFileIn(folder), JSON.stringify(content))
}

/** The configuration of the organization's policy gateway. */
export const configurationOf = ({ action, isStrict }: Setting) => ({
  policy_id: 'house',
  rules: {
    allowlist: ['permitted'],
    denylist: ['denied'],
    flagged_categories: ['sexual', 'harassment'],
    unscored_parts: isStrict ? 'refuse' : 'pass',
  },
  org_controls: {
    project_keys: true,
    user_quotas: true,
    user_quota: { requests: quotaOfRequests, tokens: 0, window: 'monthly' },
  },
  refusal_replacement: { mode: action, escalation_path: 'help@example.com' },
})

/** More than a test makes. */
export const quotaOfRequests = 1_000_000
