import { listEventPage, resumeAuditLog } from './audit.ts'
import type { Command, CommandOutput, OperatorDeps, Topics } from './command.ts'
import { addGrant, addPayment, addRefund, reconcileLedger } from './credits.ts'
import { changeOperatorLimits, showLimits } from './limits.ts'
import { memberCommands } from './member-commands.ts'
import {
  createOrganizationWithCredits,
  createRecoveryKey,
  listOrganizationPage,
  setOperatorPlan,
  changeOrganizationStatus,
  showOrganization,
} from './organizations.ts'
import { checkPolicies } from './policies.ts'
import {
  limitFlags,
  readAmount,
  readId,
  readLimitNumbers,
  readLimitsTarget,
  readName,
  readNewLimits,
  readPlan,
  readPositiveAmount,
} from './read-values.ts'
import { adoptMasterKey, rewrapSecrets } from './secrets.ts'
import { signInLink } from './sign-in-link.ts'

const limitSynopsis = [
  '[--requests-per-minute <n>] [--requests-per-day <n>] [--concurrent-requests <n>]',
  '[--tokens-per-minute <n>] [--tokens-per-day <n>]',
]

const create: Command = {
  synopsis: [
    'create --name <name> [--plan <free|developer|growth|scale>] [--usd <amount>]',
    ...limitSynopsis,
  ].join('\n      '),
  help: [
    'Creates an organization and prints its first administrator key, which is not shown again.',
    '--plan decides its tier, and with it the limits of its keys and projects; it is free without.',
    "The other flags set limits of the organization instead of the tier's, as 'limits set' does.",
    '--usd also grants it credits. If that fails, credits_granted is false and the exit code is 1,',
    'but the organization and its key are valid.',
  ],
  organizationId: 'none',
  required: ['name'],
  optional: ['plan', 'usd', ...Object.values(limitFlags)],
  needsProvedKey: true,
  prepare(args) {
    const { values } = args
    const organization = {
      name: readName(values.name),
      plan: values.plan === undefined ? 'free' : readPlan(values.plan),
      limits: readNewLimits(args),
      credits: values.usd === undefined ? 0n : readAmount(values.usd),
    }
    return (deps) => createOrganizationWithCredits(organization, deps)
  },
}

const list: Command = {
  synopsis: 'list [--after <organization id>]',
  help: ['Lists the organizations in the order of their creation, 100 per page.'],
  organizationId: 'none',
  required: [],
  optional: ['after'],
  prepare:
    ({ values }) =>
    (deps) =>
      listOrganizationPage(values.after, deps),
}

/** A command about one organization, without flags. */
const aboutOrganization = (
  name: string,
  help: readonly string[],
  run: (id: string, deps: OperatorDeps) => Promise<CommandOutput>,
): Command => ({
  synopsis: `${name} <organization id>`,
  help,
  organizationId: 'required',
  required: [],
  optional: [],
  prepare:
    ({ organizationId }) =>
    (deps) =>
      run(organizationId, deps),
})

const plan: Command = {
  synopsis: 'plan <organization id> --plan <free|developer|growth|scale>',
  help: ['Sets the plan that you give. A higher plan from a subscription stays in force.'],
  organizationId: 'required',
  required: ['plan'],
  optional: [],
  prepare({ organizationId, values }) {
    const chosen = readPlan(values.plan)
    return (deps) => setOperatorPlan(organizationId, chosen, deps)
  },
}

const payment: Command = {
  synopsis: 'payment <organization id> --id <payment id> --usd <amount>',
  help: [
    'Records a payment: adds credits, and counts towards the tier. Choose the id yourself;',
    'repeating it changes nothing.',
  ],
  organizationId: 'required',
  required: ['id', 'usd'],
  optional: [],
  prepare({ organizationId, values }) {
    const received = { id: readId('id', values.id), amount: readPositiveAmount(values.usd) }
    return (deps) => addPayment(organizationId, received, deps)
  },
}

const grant: Command = {
  synopsis: 'grant <organization id> --id <grant id> --usd <amount>',
  help: ['Adds credits without a payment. They do not count towards the tier.'],
  organizationId: 'required',
  required: ['id', 'usd'],
  optional: [],
  prepare({ organizationId, values }) {
    const given = { id: readId('id', values.id), amount: readPositiveAmount(values.usd) }
    return (deps) => addGrant(organizationId, given, deps)
  },
}

const refund: Command = {
  synopsis: 'refund <organization id> --id <refund id> --payment <payment id> --usd <amount>',
  help: ['Takes back a payment, or part of one. Credits that are spent already are written off.'],
  organizationId: 'required',
  required: ['id', 'payment', 'usd'],
  optional: [],
  prepare({ organizationId, values }) {
    const returned = {
      id: readId('id', values.id),
      paymentId: readId('payment', values.payment),
      amount: readPositiveAmount(values.usd),
    }
    return (deps) => addRefund(organizationId, returned, deps)
  },
}

const reconcile: Command = {
  synopsis: 'reconcile [<organization id>]',
  help: ['Compares balances and usage with the ledger. The exit code is 1 if they differ.'],
  organizationId: 'optional',
  required: [],
  optional: [],
  prepare:
    ({ organizationId }) =>
    (deps) =>
      reconcileLedger(organizationId, deps),
}

const setLimits: Command = {
  synopsis: ['set <organization id> [--project <id>] [--key <id>]', ...limitSynopsis].join(
    '\n      ',
  ),
  help: [
    "Sets limits that hold instead of the tier's, everywhere within 5 seconds. Limits that are",
    "not named stay as they are; --requests-per-day none returns to the tier's number. Without",
    '--project or --key they are the limits of the organization, which alone has --tokens-per-day.',
    "Administrators can change the limits of projects and keys, up to the organization's.",
  ],
  organizationId: 'required',
  required: [],
  optional: ['project', 'key', ...Object.values(limitFlags)],
  prepare(args) {
    const target = readLimitsTarget(args)
    const edit = readLimitNumbers(args)
    return (deps) => changeOperatorLimits(target, edit, deps)
  },
}

const clearLimits: Command = {
  synopsis: 'clear <organization id> [--project <id>] [--key <id>]',
  help: ["Removes all limits that were set there, so that the tier's hold again."],
  organizationId: 'required',
  required: [],
  optional: ['project', 'key'],
  prepare(args) {
    const target = readLimitsTarget(args)
    return (deps) => changeOperatorLimits(target, null, deps)
  },
}

const check: Command = {
  synopsis: 'check',
  help: [
    'Lists published policies, paused ones included, that this release cannot evaluate or whose',
    'patterns take too long, in all organizations. Run it when you upgrade. The exit code is 1 if',
    'an enforcing one is among them.',
  ],
  organizationId: 'none',
  required: [],
  optional: [],
  prepare: () => checkPolicies,
}

const events: Command = {
  synopsis: 'events [<organization id>] [--after <event id>]',
  help: [
    'Lists audit events, the newest first, 100 per page: those of an organization, or without',
    'one those of callers who belong to none. --json prints all members.',
  ],
  organizationId: 'optional',
  required: [],
  optional: ['after'],
  prepare:
    ({ organizationId, values }) =>
    (deps) =>
      listEventPage(organizationId, values.after, deps),
}

const resume: Command = {
  synopsis: 'resume',
  help: [
    'Run it after a dump was restored into another PostgreSQL server: transaction numbers start',
    'again there, and new events would get no number in the audit log. Numbers the events that',
    'have none, and lets the worker go on from there. Can be repeated.',
  ],
  organizationId: 'none',
  required: [],
  optional: [],
  prepare: () => resumeAuditLog,
}

const rewrap: Command = {
  synopsis: 'rewrap',
  help: [
    'Seals the secrets of export sinks and guardrails with the first key of MASTER_KEYS, as part of',
    'a rotation. Can be repeated. The exit code is 1 if no key opens some of them.',
  ],
  organizationId: 'none',
  required: [],
  optional: [],
  needsProvedKey: true,
  prepare: () => rewrapSecrets,
}

const adopt: Command = {
  synopsis: 'adopt',
  help: [
    'Run it if the master key is lost for good, to go on with the first key of MASTER_KEYS, after',
    "'update installation set key_check = null' in the database. API keys and sealed secrets that",
    'were made with the lost key stay useless.',
  ],
  organizationId: 'none',
  required: [],
  optional: [],
  prepare: () => adoptMasterKey,
}

export const topics: Topics = {
  organizations: {
    create,
    list,
    show: aboutOrganization(
      'show',
      ['Shows its balance, what it has used and paid, its plan and its tier.'],
      showOrganization,
    ),
    suspend: aboutOrganization(
      'suspend',
      ['Refuses all of its calls with 403, within 5 seconds.'],
      (id, deps) => changeOrganizationStatus(id, 'suspended', deps),
    ),
    reinstate: aboutOrganization('reinstate', ['Accepts its calls again.'], (id, deps) =>
      changeOrganizationStatus(id, 'active', deps),
    ),
    recover: {
      ...aboutOrganization(
        'recover',
        ['Creates a new administrator key, for an organization that has lost all of its own.'],
        createRecoveryKey,
      ),
      needsProvedKey: true,
    },
    plan,
    payment,
    grant,
    refund,
  },
  members: memberCommands,
  'sign-in-link': { '': signInLink },
  credits: { reconcile },
  policies: { check },
  audit: { events, resume },
  secrets: { rewrap, adopt },
  limits: {
    show: aboutOrganization(
      'show',
      ['Lists the limits that were set for it, its projects and its keys.'],
      showLimits,
    ),
    set: setLimits,
    clear: clearLimits,
  },
}
