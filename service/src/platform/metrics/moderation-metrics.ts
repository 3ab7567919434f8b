import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** The scorers of texts. */
export function moderationMetrics(registers: Registry[]) {
  return {
    moderationFileIsStale: new Gauge({
      name: 'gatehouse_moderation_file_stale',
      help: '1 while MODERATION_FILE is invalid and its last valid contents stay in use.',
      aggregator: 'max',
      registers,
    }),
    scorerRequests: new Counter({
      name: 'gatehouse_scorer_requests_total',
      help: 'Times that a scorer was needed, for one or more texts whose scores were not known.',
      labelNames: ['scorer'],
      registers,
    }),
    scorerFailures: new Counter({
      name: 'gatehouse_scorer_failures_total',
      help: 'Times that a scorer gave no scores, by what went wrong.',
      labelNames: ['scorer', 'problem'],
      registers,
    }),
    scorerSeconds: new Histogram({
      name: 'gatehouse_scorer_seconds',
      help: 'Time until a scorer has scored the texts of one request or window, or has failed.',
      labelNames: ['scorer'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    answerWindows: new Counter({
      name: 'gatehouse_answer_windows_total',
      help: 'Windows of answers that were scored: `local` in this process, `known` from before, `asked` of the configured scorers.',
      labelNames: ['source'],
      registers,
    }),
    scoreLookups: new Counter({
      name: 'gatehouse_score_lookups_total',
      help: 'Texts whose scores were known from before, or were not.',
      labelNames: ['result'],
      registers,
    }),
  }
}

/** The model that judges rules in plain language. */
export function judgeMetrics(registers: Registry[]) {
  return {
    judgeCalls: new Counter({
      name: 'gatehouse_judge_calls_total',
      help: 'Calls to the judge, second tries included, by outcome; `nothing` if the call was ended from here.',
      labelNames: ['outcome'],
      registers,
    }),
    judgeVerdicts: new Counter({
      name: 'gatehouse_judge_verdicts_total',
      help: 'Verdicts on one rule: cached, by a screening of several rules, or by a call for this rule alone.',
      labelNames: ['source'],
      registers,
    }),
    judgeSeconds: new Histogram({
      name: 'gatehouse_judge_seconds',
      help: 'Time to judge a text by all of its rules in plain language.',
      buckets: [0.001, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2.5],
      registers,
    }),
    monitoringJudgeIsPausing: new Gauge({
      name: 'gatehouse_monitoring_judge_pausing',
      help: '1 if the judge is not asked about monitoring policies for a moment, because it has failed too often.',
      aggregator: 'max',
      registers,
    }),
    monitoredCalls: new Counter({
      name: 'gatehouse_monitored_calls_total',
      help: 'Calls that monitoring policies in plain language are asked about, by outcome; `dropped` if there was no room or no time.',
      labelNames: ['outcome'],
      registers,
    }),
    monitoringWaiting: new Gauge({
      name: 'gatehouse_monitoring_waiting',
      help: 'Calls that wait to be judged by monitoring policies in plain language.',
      registers,
    }),
    judgeIsPausing: new Gauge({
      name: 'gatehouse_judge_pausing',
      help: '1 if the judge is not asked for a moment, because it has failed too often.',
      aggregator: 'max',
      registers,
    }),
  }
}

/** The webhooks that decide about texts: `kind` is whose they are, `operator` or `organization`. */
export function guardrailMetrics(registers: Registry[]) {
  return {
    guardrailQuestions: new Counter({
      name: 'gatehouse_guardrail_questions_total',
      help: 'Questions to guardrails of the operator and of organizations.',
      labelNames: ['kind'],
      registers,
    }),
    guardrailFailures: new Counter({
      name: 'gatehouse_guardrail_failures_total',
      help: 'Times that a guardrail did not decide, by what went wrong.',
      labelNames: ['kind', 'problem'],
      registers,
    }),
    guardrailSeconds: new Histogram({
      name: 'gatehouse_guardrail_seconds',
      help: 'Time until a guardrail has decided about the texts of one request or window, or has failed.',
      labelNames: ['kind'],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10],
      registers,
    }),
  }
}

/** The model that writes what is said instead of what was blocked. */
export function replacementMetrics(registers: Registry[]) {
  return {
    replacements: new Counter({
      name: 'gatehouse_replacements_total',
      help: 'Blocked requests and answers that were to be replaced, by action and outcome; all but `replaced` were refused.',
      labelNames: ['action', 'outcome'],
      registers,
    }),
    replacementTokens: new Counter({
      name: 'gatehouse_replacement_tokens_total',
      help: 'Tokens that the rewriter has read (`input`) and written (`output`), also in vain. No organization is charged for them.',
      labelNames: ['kind'],
      registers,
    }),
    replacementSeconds: new Histogram({
      name: 'gatehouse_replacement_seconds',
      help: 'Time until a replacement was written and judged, or there was none.',
      buckets: [0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 7.5, 10],
      registers,
    }),
  }
}
