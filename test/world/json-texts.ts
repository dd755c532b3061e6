/** JSON as others write it: any white space, numbers of any length, escapes where none are needed, members twice. For tests. */
import fc from 'fast-check'
import { membersOf } from '../../src/core/json/exact.ts'
import { pointerBelow, stepsOf } from '../../src/core/json/pointer.ts'

const spaces = fc.constantFrom('', '', ' ', '\n  ', '\t', '\r\n')

const numbers = fc.oneof(
  fc.integer().map(String),
  fc.bigInt().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom('-0', '1.0', '1E+2', '0.1000000000000000055', '12345678901234567890', '1e400', '0e0'),
)

const strings = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 6 }), fc.boolean())
  .map(([text, isEscaped]) => (isEscaped ? escaped(text) : JSON.stringify(text)))

/** Every character by its number. */
const escaped = (text: string): string =>
  `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`

/** Few, so that they meet again. */
const names = fc
  .tuple(fc.constantFrom('a', 'b', 'c', '', '/', '~1', '0', '__proto__', 'constructor'), fc.boolean())
  .map(([name, isEscaped]) => (isEscaped ? escaped(name) : JSON.stringify(name)))

/** Texts of JSON documents; members of one name come twice unless that is excluded. */
export function jsonTexts({ duplicates = true } = {}): fc.Arbitrary<string> {
  const { value } = fc.letrec<{ value: string }>((tie) => {
    const part = fc.tuple(spaces, tie('value'), spaces).map((texts) => texts.join(''))
    const member = fc.record({ before: spaces, name: names, behind: spaces, value: part })
    const selector = ({ name }: { readonly name: string }): unknown => JSON.parse(name)
    const members = duplicates
      ? fc.array(member, { maxLength: 6 })
      : fc.uniqueArray(member, { maxLength: 6, selector })
    return {
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.oneof(numbers, strings, fc.constantFrom('true', 'false', 'null')),
        fc
          .tuple(spaces, fc.array(part, { maxLength: 5 }))
          .map(([blank, parts]) => `[${parts.join() || blank}]`),
        fc.tuple(spaces, members).map(([blank, all]) => {
          const texts = all.map(({ before, name, behind, value }) => `${before}${name}${behind}:${value}`)
          return `{${texts.join() || blank}}`
        }),
      ),
    }
  })
  return fc.tuple(spaces, value, spaces).map((texts) => texts.join(''))
}

/** All paths to values of a document. */
export function pathsIn(value: unknown, path = ''): readonly string[] {
  const parts = Object.entries(Array.isArray(value) ? value : (membersOf(value) ?? {}))
  return [path, ...parts.flatMap(([step, part]) => pathsIn(part, pointerBelow(path, step)))]
}

/** What a path leads to. */
export const valueAt = (document: unknown, path: string): unknown =>
  stepsOf(path).reduce((at: unknown, step) => {
    const parts: Readonly<Record<string, unknown>> = Object(at)
    return Object.hasOwn(parts, step) ? parts[step] : undefined
  }, document)
