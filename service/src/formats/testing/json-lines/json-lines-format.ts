import type { UpstreamFormat } from '#formats/format.ts'
import { asObject, asText } from '#formats/json-values.ts'
import { createTextReader } from '#formats/texts/create-text-reader.ts'

import { jsonLines } from './json-lines-framing.ts'
import { createJsonLinesReader } from './read-json-lines.ts'

/**
 * An invented format that no caller speaks. It differs from the real ones wherever a format may: path,
 * credential header, framing, place of the usage, errors.
 */
export const jsonLinesFormat: UpstreamFormat = {
  name: 'json_lines',
  pathOf: (model) => `/models/${model}:generate?stream=lines`,
  authorize: (secret) => ({ 'x-lines-key': secret }),
  headers: { 'x-lines-version': '1' },
  writeRequest: ({ system, messages }, { maxOutputTokens }) => ({
    limit: maxOutputTokens,
    lines: [
      ...system.map((text) => ({ from: 'system', text })),
      ...messages.flatMap(({ role, parts }) =>
        parts.flatMap((part) => (part.type === 'text' ? [{ from: role, text: part.text }] : [])),
      ),
    ],
  }),
  framing: jsonLines,
  createReader: createJsonLinesReader,
  createTextReader: () =>
    createTextReader({
      readFrame: (texts, { json }) => texts.addStrings('line', json),
      readPlain: (texts, body) => texts.addStrings('line', body),
    }),
  usageIn: (line) => asObject(line['counts']),
  readError(body) {
    const message = asText(body['problem'])
    return message === undefined ? null : { message, type: null, code: null }
  },
}
