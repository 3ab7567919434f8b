/** Text for one line of a log or of an error: control characters would end the line, and PostgreSQL stores no NUL. */
export const oneLine = (text: string, max: number) =>
  text
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, max)
    .toWellFormed()
