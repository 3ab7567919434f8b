import { type Page, pageIn } from './page.ts'
import { aligned, lengthOf, withoutControls } from './text-columns.ts'

type Item = Record<string, unknown>

/** An answer as a table or as one line per member. Scripts use `--json`. */
export function humanForm(answer: unknown): string {
  const page = pageIn(answer)
  const lines = page ? linesOfPage(page) : linesOfItem(isItem(answer) ? answer : { answer })
  return `${lines.join('\n')}\n`
}

const isItem = (value: unknown): value is Item =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function linesOfPage({ data, has_more, last_id }: Page): string[] {
  const items = data.filter(isItem)
  const columns = columnsOf(items)
  const rows = items.map((item) => columns.map((column) => cellOf(column, item[column])))
  return [
    ...(items.length > 0 ? aligned([columns, ...rows]) : ['Nothing to list.']),
    ...(has_more ? ['', `There is more: --after ${last_id} shows the next page.`] : []),
  ]
}

/** Id and name first, times last; members that are objects or lists are shown for single items only. */
function columnsOf(items: readonly Item[]): string[] {
  const members = new Set(items.flatMap(Object.keys))
  members.delete('object')
  const plain = [...members].filter((member) => items.every((item) => isPlain(item[member])))
  return plain.toSorted((left, right) => rank(left) - rank(right))
}

function rank(member: string): number {
  const first = ['id', 'name'].indexOf(member)
  if (first >= 0) return first
  return member.endsWith('_at') ? 3 : 2
}

const isPlain = (value: unknown) => typeof value !== 'object' || value === null

const cellMax = 48

/** An id is never shortened: the next command needs all of it. */
function cellOf(column: string, value: unknown): string {
  const text = withoutControls(textOf(column, value))
  const isShown = column === 'id' || lengthOf(text) <= cellMax
  return isShown
    ? text
    : `${Array.from(text)
        .slice(0, cellMax - 1)
        .join('')}…`
}

function linesOfItem(item: Item): string[] {
  const members = flattened(item)
  const names = aligned(members.map(([name]) => [`${name}:`, '|'])).map((line) => line.slice(0, -1))
  const indent = `\n${' '.repeat(names[0]?.length ?? 0)}`
  return [
    ...members.map(([name, value], index) => {
      const lines = textOf(name, value).split('\n').map(withoutControls)
      return `${names[index]}${lines.join(indent)}`.trimEnd()
    }),
    ...('value' in item && 'redacted_value' in item ? ['', shownOnce] : []),
  ]
}

const shownOnce = 'Store the value now: it is shown only once and cannot be read again.'

/** Members of nested objects get dotted names: `owner.id`. The member `object` is left out. */
function flattened(item: Item, prefix = ''): [name: string, value: unknown][] {
  return Object.entries(item)
    .filter(([name]) => name !== 'object')
    .flatMap(([name, value]): [string, unknown][] =>
      isItem(value) ? flattened(value, `${prefix}${name}.`) : [[`${prefix}${name}`, value]],
    )
}

function textOf(name: string, value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (name.endsWith('_at') && typeof value === 'number') return isoTime(value)
  if (typeof value === 'string') return value
  const isListOfPlain = Array.isArray(value) && value.every(isPlain)
  return isListOfPlain ? value.join(', ') || '-' : JSON.stringify(value)
}

/** The largest value a Date can hold; a larger one is printed as a number. */
const secondsMax = 8.64e12

function isoTime(seconds: number): string {
  if (Math.abs(seconds) > secondsMax) return String(seconds)
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
