// The labels of an organization or a project, which stand in its row.

export type Labels = Record<string, string>

/** Only what the contract has checked is stored. The database sorts the names. */
export const readLabels = (column: unknown) => column as Labels

/** Absent or null keeps the labels; whatever is given replaces all of them. */
export const editLabels = (before: Labels, edit: Labels | null | undefined): Labels =>
  edit ?? before

export const areSameLabels = (one: Labels, other: Labels): boolean => toText(one) === toText(other)

const toText = (labels: Labels) =>
  JSON.stringify(Object.entries(labels).toSorted(([one], [other]) => (one < other ? -1 : 1)))
