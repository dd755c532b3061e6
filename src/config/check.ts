/** Compares what one source of configuration gives with the schema and tells all that is wrong with it. */
import { compare } from '../core/settings/compare.ts'
import { isRecord, type Settings, withoutNothing } from '../core/settings/given.ts'
import { SECTIONS } from '../sources/settings.ts'
import { problemsOfAliases, withoutAliases } from './aliases.ts'
import { GivenSchema } from './schema.ts'

/** Problems of `given`, each opening with `where` and the key. Sections and keys may be left out. */
export function checkSettings(where: string, given: unknown): string[] {
  const problems: string[] = []
  compare(GivenSchema, given, '', (key, problem) =>
    problems.push(key === '' ? problem : `${key}: ${problem}`),
  )
  if (problems.length === 0 && isRecord(given)) {
    // Without nothing it is a mapping as it was.
    const settings = withoutNothing(withoutAliases(given)) as Settings
    problems.push(
      ...problemsOfAliases(given),
      ...problemsOfTokens(settings),
      ...SECTIONS.flatMap(({ name, problems }) =>
        settings[name] === undefined ? [] : (problems?.(settings[name], settings) ?? []),
      ),
    )
  }
  return problems.map((problem) => `${where}: ${problem}`)
}

/** Two tokens of one name, or one token under two names, would make revoking one a guess. */
function problemsOfTokens({ auth }: Settings): readonly string[] {
  const tokens = isRecord(auth) && Array.isArray(auth.tokens) ? auth.tokens : []
  return ['name', 'sha256'].flatMap((property) => {
    const values = tokens.map((token) => token[property])
    return values.flatMap((value, index) => {
      const first = values.indexOf(value)
      return first < index
        ? [`auth.tokens[${index}].${property}: is the same as that of auth.tokens[${first}]`]
        : []
    })
  })
}
