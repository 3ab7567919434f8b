import { z } from 'zod'

import { GivenMonthlyBudget, MonthlyBudget } from '../monthly-budget.ts'
import { storedText, trimmedText } from '../text.ts'

/** What the configuration can make of a request or an answer that it does not allow. */
const gatewayActions = ['rewrite', 'summary', 'escalate', 'refuse'] as const
const GatewayAction = z.enum(gatewayActions)
type GatewayAction = z.infer<typeof GatewayAction>

/** Terms are compared without what nobody sees, and one of which nothing is left would be in every text. */
const visible =
  /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\u2800\ufff9-\ufffb]/u

const Term = storedText(1, 200).refine((term) => visible.test(term), {
  error: 'must have a visible character',
})
const Terms = z.array(Term).max(1000)

const Category = z
  .string()
  .max(100)
  .regex(/^[a-z][a-z0-9_-]*(\/[a-z0-9_-]+)?$/, {
    error: 'must be a category such as hate or hate/threatening',
  })

const ReasonCode = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,63}$/, { error: 'must be a code such as REFUSE_INTERNAL' })

const Quota = {
  requests: z.int().min(0).max(2_147_483_647).describe('0: unlimited.'),
  tokens: z.int().min(0).max(2_147_483_647).describe('0: unlimited.'),
  window: z.enum(['daily', 'weekly', 'monthly']).describe('By the calendar, in UTC.'),
}
const noQuota = { requests: 0, tokens: 0 }

const Arm = {
  enabled: z.boolean(),
  sample_percent: z.number().min(0).max(100),
  targets: z
    .array(storedText(1, 200))
    .max(100)
    .describe('What `X-Policy-Target` says, or messages, responses, chat.completions; empty: all.'),
}
const noArm = { enabled: false, sample_percent: 0, targets: [] }

const rules = {
  allowlist: Terms.describe('If there are any, a request must have one of them.'),
  denylist: Terms,
  redact: z.boolean(),
  rewrite_instead_of_refuse: z.boolean(),
  response_pattern: GatewayAction,
  reason_codes: z.array(ReasonCode).max(100),
  flagged_categories: z.array(Category).max(100).describe('`hate` also stands for `hate/…`.'),
}

/** How texts are judged and redacted beyond the lists. They are shown only where they were given. */
const judging = {
  assistant_history: z
    .enum(['answer', 'both', 'skip'])
    .optional()
    .describe(
      'What the assistant said earlier is judged as an answer, as answer and request, or not at all. Default: answer.',
    ),
  unscored_parts: z
    .enum(['pass', 'refuse'])
    .optional()
    .describe('Requests with a part that moderation cannot read. Default: pass.'),
  redact_restore: z
    .boolean()
    .optional()
    .describe('Whether answers get back the values that were redacted. Default: false.'),
  contact: storedText(1, 200)
    .optional()
    .describe('A sentence behind the message of every block that tells callers whom to ask.'),
}

const controls = {
  project_keys: z.boolean(),
  user_quotas: z.boolean(),
  audit_logs: z.boolean(),
  data_classification: storedText(1, 64),
}

/** When a rollout takes itself back. They are shown only where they were given. */
const rollback = {
  rollback_threshold: z.number().min(0.001).max(1).optional().describe('Default: 0.25.'),
  rollback_min_requests: z.int().min(1).max(1_000_000).optional().describe('Default: 20.'),
  rollback_window_minutes: z.int().min(1).max(1440).optional().describe('Default: 15.'),
  rollback_cooldown_minutes: z.int().min(1).max(10_080).optional().describe('Default: 30.'),
  rollback_decisions: z
    .array(GatewayAction)
    .min(1)
    .max(gatewayActions.length)
    .optional()
    .describe('Default: refuse and escalate.'),
}

const isContact = (path: string) =>
  path === '' ||
  z.email().safeParse(path).success ||
  z.url({ protocol: /^https$/ }).safeParse(path).success

const EscalationPath = storedText(0, 500).refine(isContact, {
  error: 'must be an email address, an https URL, or empty',
})

const texts = {
  policy_id: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[a-z0-9][a-z0-9_-]*$/, {
      error: 'must have only a to z, 0 to 9, _ and -, and start with a letter or a digit',
    }),
  name: trimmedText(1, 100),
  owner: trimmedText(0, 200),
  description: trimmedText(0, 2000),
}

/** The configuration as answers have it: complete. */
export const GatewayConfig = z
  .object({
    ...texts,
    rules: z.object({ ...rules, ...judging }),
    org_controls: z.object({
      ...controls,
      user_quota: z.object(Quota),
      project_quota: z.object(Quota),
      monthly_budget: MonthlyBudget.optional().describe('Of the organization.'),
    }),
    rollout: z.object({
      shadow: z.object(Arm),
      canary: z.object(Arm),
      rollback_on_spike: z.boolean(),
      ...rollback,
    }),
    refusal_replacement: z.object({ mode: GatewayAction, escalation_path: EscalationPath }),
  })
  .meta({ id: 'GatewayConfig' })
export type GatewayConfig = z.infer<typeof GatewayConfig>

type Defaulted<Shape extends z.ZodRawShape> = { [Name in keyof Shape]: z.ZodDefault<Shape[Name]> }
type Values<Shape extends z.ZodRawShape> = { [Name in keyof Shape]: z.output<Shape[Name]> }

/** A misspelt setting must not vanish silently, so every object of a configuration is closed. */
const withDefaults = <Shape extends z.ZodRawShape>(shape: Shape, defaults: Values<Shape>) =>
  Object.fromEntries(
    Object.entries(shape).map(([name, schema]) => [
      name,
      (schema as z.ZodType).default(defaults[name]),
    ]),
  ) as unknown as Defaulted<Shape>

const quotaPer = (window: 'daily' | 'monthly') =>
  z.strictObject(withDefaults(Quota, { ...noQuota, window })).prefault({})
const arm = () => z.strictObject(withDefaults(Arm, noArm)).prefault({})

const Given = z.strictObject({
  policy_id: texts.policy_id.default('policy-gateway'),
  name: texts.name.optional().describe('Default: the policy_id.'),
  owner: texts.owner.default(''),
  description: texts.description.default(''),
  rules: z
    .strictObject({
      ...withDefaults(rules, {
        allowlist: [],
        denylist: [],
        redact: false,
        rewrite_instead_of_refuse: false,
        response_pattern: 'refuse',
        reason_codes: [],
        flagged_categories: [],
      }),
      ...judging,
    })
    .prefault({}),
  org_controls: z
    .strictObject({
      ...withDefaults(controls, {
        project_keys: false,
        user_quotas: false,
        audit_logs: true,
        data_classification: 'internal',
      }),
      user_quota: quotaPer('daily'),
      project_quota: quotaPer('monthly'),
      monthly_budget: GivenMonthlyBudget.optional().describe('Of the organization.'),
    })
    .prefault({}),
  rollout: z
    .strictObject({
      shadow: arm(),
      canary: arm(),
      rollback_on_spike: z.boolean().default(false),
      ...rollback,
    })
    .prefault({}),
  refusal_replacement: z
    .strictObject({
      mode: GatewayAction.optional().describe('Default: the response_pattern of the rules.'),
      escalation_path: EscalationPath.default(''),
    })
    .prefault({}),
})

/**
 * What is done about a term or a category. `mode` counts before `response_pattern`: where it was not given, it has the
 * value of `response_pattern`, so that a configuration which is read and sent back means the same.
 */
export function effectiveAction({ rules, refusal_replacement }: GatewayConfig): GatewayAction {
  const { mode } = refusal_replacement
  return mode === 'refuse' && rules.rewrite_instead_of_refuse ? 'rewrite' : mode
}

function complete(given: z.output<typeof Given>): GatewayConfig {
  const { policy_id, name = policy_id, rules, refusal_replacement } = given
  const { mode = rules.response_pattern, escalation_path } = refusal_replacement
  const completed = { ...given, name, refusal_replacement: { mode, escalation_path } }
  return GatewayConfig.parse(completed) // for the order of members
}

/** A configuration as requests give it: whatever is left out has its default. */
export const GivenGatewayConfig = Given.transform(complete).meta({ id: 'GivenGatewayConfig' })

/** The configuration of an organization that has saved none. */
export const defaultGatewayConfig = (): GatewayConfig => GivenGatewayConfig.parse({})

/** Where a configuration contradicts itself: the path of the member, and the rule it breaks. */
export function findContradiction(config: GatewayConfig) {
  const { escalation_path } = config.refusal_replacement
  if (effectiveAction(config) !== 'escalate' || escalation_path !== '') return null
  return {
    path: 'refusal_replacement.escalation_path',
    rule: 'must not be empty, because the configuration can escalate',
  }
}
