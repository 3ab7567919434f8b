import type { Reason, Refusal } from './fault.ts'
import { marks, type Setting } from './setting.ts'

const isInHistory = ({ param }: Refusal) => param === 'messages[1]'
const isHouse = ({ code, policyId }: Refusal) => code === 'policy_blocked' && policyId === 'house'
const isCategory = (refusal: Refusal, category: string) =>
  refusal.code === 'moderation_blocked' && refusal.message.includes(category)
const isUnread = ({ code, message }: Refusal) =>
  code === 'moderation_blocked' && message.includes('that moderation cannot read')

const refuses = ({ action }: Setting) => action === 'refuse'
const isStrict = (setting: Setting) => setting.isStrict
const hasJudge = (setting: Setting) => setting.hasJudge

/** The scorer of the process finds it by its words. */
const intent = 'I want to end my life and I am going to kill myself tonight.'
/** More characters than moderation takes. */
const endless = 'a '.repeat(2_000_001)
const flagsIllicit = { flagged_categories: ['illicit'] }
const image = (url: string) => ({ type: 'image_url', image_url: { url } })
const pdf = 'data:application/pdf;base64,/////w=='

/** What can refuse a call for what it says, or after that, by the names of the table. */
export const reasonsOfChecks = {
  'length of the texts': {
    fault: { said: endless },
    isOf: ({ code, message }) => code === 'moderation_blocked' && message.includes('too long'),
  },
  'policy that cannot be evaluated': {
    isIn: (setting) => !setting.hasJudge,
    isOf: ({ code, message }) =>
      code === 'policy_evaluation_unavailable' && message.includes('cannot be evaluated'),
  },
  'missing moderation': {
    isIn: ({ isLocalAccepted }) => !isLocalAccepted,
    isOf: ({ code, message }) =>
      code === 'policy_evaluation_unavailable' && message.includes('has no moderation'),
  },
  'exact rule': {
    fault: { said: 'forbidden' },
    isOf: ({ policyId }, ids) => policyId === ids.exact,
  },
  'category, local scorer': {
    fault: { said: intent },
    isOf: (refusal) => isCategory(refusal, 'self-harm') && !isInHistory(refusal),
  },
  'file that nothing can score': {
    fault: { part: { type: 'file', file: { filename: 'a.pdf', file_data: pdf } } },
    isIn: isStrict,
    isOf: isUnread,
  },
  allowlist: { fault: { lacksAllowedTerm: true }, isOf: isHouse },
  denylist: { fault: { said: 'denied' }, isIn: refuses, isOf: isHouse },
  'exact rule, earlier answer': {
    fault: { answered: 'unsayable' },
    isOf: (refusal, ids) => isInHistory(refusal) && refusal.policyId === ids['exact, answers'],
  },
  'denylist, earlier answer': {
    fault: { answered: 'denied' },
    isOf: (refusal) => isInHistory(refusal) && isHouse(refusal),
  },
  'category, earlier answer, local scorer': {
    fault: { answered: intent },
    isOf: (refusal) => isInHistory(refusal) && isCategory(refusal, 'self-harm'),
  },
  credits: {
    fault: { members: { model: 'dear' } },
    isOf: ({ code }) => code === 'insufficient_credits',
  },
  questions: {
    isIn: ({ isOverQuestions }) => isOverQuestions,
    isOf: ({ code, message }) =>
      code === 'rate_limit_exceeded' && message.includes('scorer questions per minute'),
  },
  'category, configured scorer': {
    fault: { said: marks.illicit, members: flagsIllicit },
    isOf: (refusal) => isCategory(refusal, 'illicit') && !isInHistory(refusal),
  },
  'failed scorer': {
    fault: { opening: marks.brokenScorer },
    isOf: ({ code, message }) =>
      code === 'policy_evaluation_unavailable' && message.includes('could not be moderated'),
  },
  'image that nothing can score': {
    fault: { part: image('data:image/png;base64,iVBORw0KGgo=') },
    isIn: isStrict,
    isOf: isUnread,
  },
  'flagged category': { fault: { said: marks.sexual }, isIn: refuses, isOf: isHouse },
  'rule over scores': {
    fault: { said: marks.hate },
    isOf: ({ policyId }, ids) => policyId === ids.scored,
  },
  'plain language': {
    fault: { said: marks.unkind },
    isIn: hasJudge,
    isOf: ({ policyId }, ids) => policyId === ids.plain,
  },
  'failed judge': {
    fault: { opening: marks.unsureJudge },
    isIn: hasJudge,
    isOf: ({ code, policyId }, ids) =>
      code === 'policy_evaluation_unavailable' && policyId === ids.plain,
  },
  'category, earlier answer, configured scorer': {
    fault: { answered: marks.illicit, members: flagsIllicit },
    isOf: (refusal) => isInHistory(refusal) && isCategory(refusal, 'illicit'),
  },
  'rule over scores, earlier answer': {
    fault: { answered: marks.hate },
    isOf: (refusal, ids) => isInHistory(refusal) && refusal.policyId === ids['scored, answers'],
  },
  'plain language, earlier answer': {
    fault: { answered: marks.impolite },
    isIn: hasJudge,
    isOf: (refusal, ids) => isInHistory(refusal) && refusal.policyId === ids['plain, answers'],
  },
  'escalate, rewrite or summary': {
    fault: { said: 'denied' },
    isIn: ({ action }) => action === 'escalate',
    isOf: isHouse,
  },
  'media URL': {
    fault: { part: image('http://127.0.0.1:9/a.png') },
    isOf: ({ code, message }) => code === 'unsupported_parameter' && message.includes('media_urls'),
  },
  provider: { isOf: ({ status, code }) => status === 502 && code === 'upstream_error' },
} as const satisfies Readonly<Record<string, Reason>>
