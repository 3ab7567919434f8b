import type { Json } from '#formats/answer.ts'
import type { JoinedText } from '#inference/enforcement/redaction/joined-texts.ts'
import { editRequest, type TextEditor } from '#inference/enforcement/redaction/redact-request.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { SpeakerRole } from '#moderation/guardrails/question.ts'
import { parseExact } from '#platform/exact-json.ts'
import type { Steps } from '#platform/steps/steps.ts'

import { isJsonText } from './answer-block.ts'
import type { BodyText } from './body-text.ts'

/** What becomes of the parts of a text. */
type MapText = (text: BodyText) => readonly string[]

/** A part of a text that is read together with others: they are mapped when the first of them is reached. */
type RunPart = {
  readonly run: { readonly parts: readonly string[]; mapped?: readonly string[] }
  readonly index: number
}

/**
 * The request with its texts mapped, all that redaction would read, each time in the same order. Nothing is mapped that says
 * nothing. Throws a GuardrailFailure where the result could not be sent.
 */
export const mapTexts = (body: Json, map: MapText): Steps<Json> =>
  editRequest(body, editorFor('system', map))

function editorFor(role: SpeakerRole, map: MapText): TextEditor<RunPart> {
  const mapParts = (kind: BodyText['kind'], parts: readonly string[]) =>
    parts.some((part) => part !== '') ? map({ role, kind, parts }) : parts
  const mapOne = (kind: BodyText['kind'], text: string) => mapParts(kind, [text])[0] ?? text
  return {
    *redact(text) {
      yield
      return mapOne('text', text)
    },
    *readTogether(run: readonly JoinedText[]) {
      yield
      const together = { parts: run.map(({ text }) => text) }
      return run.map((_, index) => [{ run: together, index }])
    },
    write(text, [part]) {
      if (!part) return text
      const { run, index } = part
      run.mapped ??= mapParts('text', run.parts)
      return run.mapped[index] ?? text
    },
    *redactName(name) {
      yield
      const mapped = mapOne('name', name)
      return mapped === name ? name : mapped.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_'
    },
    *mustWithhold(text) {
      yield
      return mapOne('sealed', text) !== text
    },
    *editArguments(value) {
      yield
      const json = typeof value === 'string' ? value : JSON.stringify(value)
      const mapped = mapOne('json', json)
      if (mapped === json) return value
      return typeof value === 'string' ? requireJson(mapped, value) : readJson(mapped)
    },
    at: (member) => editorFor(instructions.has(member) ? 'system' : 'user', map),
    inside: (object) => editorFor(roleInside(object) ?? role, map),
  }
}

/** Members of a request that say how the model is to answer. */
const instructions: ReadonlySet<string> = new Set([
  'system',
  'instructions',
  'tools',
  'functions',
  'text',
  'response_format',
  'output_config',
  'output_format',
])

const roles: ReadonlyMap<unknown, SpeakerRole> = new Map([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
  ['tool', 'tool'],
  ['function', 'tool'],
])

const resultType = /_(?:result|output)$/
const ofAssistant = /_call$|^reasoning$/

/** Undefined where it is the role of what stands around it. */
function roleInside({ role, type }: Json): SpeakerRole | undefined {
  if (typeof role === 'string') return roles.get(role)
  if (typeof type !== 'string') return undefined
  if (resultType.test(type)) return 'tool'
  return ofAssistant.test(type) ? 'assistant' : undefined
}

/** What was no JSON before need not become any. */
function requireJson(mapped: string, before: string): string {
  if (isJsonText(before) && !isJsonText(mapped)) throw noLongerJson()
  return mapped
}

function readJson(text: string): unknown {
  if (!isJsonText(text)) throw noLongerJson()
  return parseExact(text)
}

const noLongerJson = () =>
  new GuardrailFailure(
    'unwritable',
    'The arguments of a tool call would no longer be JSON if the guardrail rewrote them.',
  )
