/**
 * How commands are written: words and options first, then the work, with arguments and flags typed by those words. The
 * command line makes a command anew, with its kit, for every run.
 */
import { Command } from 'commander'
import { EXIT_HELP } from './exit.ts'

export type MakeCommand<Kit> = (kit: Kit) => Command

/** Opens what a command works with, and closes it afterwards. */
type Begin<Kit, Subject> = (
  kit: Kit,
  flags: object,
  work: (subject: Subject) => Promise<void> | void,
) => Promise<void>

type Step = (command: Command) => unknown

/** `<id>` is a text, `[id]` one that may be missing, `<ids...>` any number; the other words are names. */
type Arguments<Words extends string> = Words extends `${infer First} ${infer Rest}`
  ? [...Argument<First>, ...Arguments<Rest>]
  : Argument<Words>
type Argument<Word extends string> = Word extends `${'<' | '['}${string}...${string}`
  ? [string[]]
  : Word extends `<${string}`
    ? [string]
    : Word extends `[${string}`
      ? [string | undefined]
      : []

/** `-y, --dry-run` is `dryRun`. */
type Name<Flag extends string> = Flag extends `${string}--${infer Long}`
  ? Long extends `${infer Word} ${string}`
    ? Camel<Word>
    : Camel<Long>
  : never
type Camel<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text
/** A flag without a value is true where it is given. */
type Value<Flag extends string> = Flag extends `${string} <${string}`
  ? string
  : Flag extends `${string} [${string}`
    ? string | true
    : boolean

type May<Flag extends string> = { readonly [Key in Name<Flag>]?: Value<Flag> }
type Has<Flag extends string> = { readonly [Key in Name<Flag>]: Value<Flag> }

/** A command being written. */
export class Writing<Kit, Subject, Given extends readonly unknown[], Flags extends object> {
  readonly #name: string
  readonly #steps: readonly Step[]
  readonly #begin: Begin<Kit, Subject>

  constructor(name: string, steps: readonly Step[], begin: Begin<Kit, Subject>) {
    this.#name = name
    this.#steps = steps
    this.#begin = begin
  }

  /** For what the other methods cannot say; `More` are the flags that come of it. */
  adding<More extends object = object>(step: Step): Writing<Kit, Subject, Given, Flags & More> {
    return new Writing(this.#name, [...this.#steps, step], this.#begin)
  }

  /** `otherwise` is its default. */
  option<const Flag extends string>(flag: Flag, text: string): Writing<Kit, Subject, Given, Flags & May<Flag>>
  option<const Flag extends string>(
    flag: Flag,
    text: string,
    otherwise: string,
  ): Writing<Kit, Subject, Given, Flags & Has<Flag>>
  option(flag: string, text: string, otherwise?: string) {
    return this.adding((command) => command.option(flag, text, otherwise))
  }

  needed<const Flag extends string>(
    flag: Flag,
    text: string,
  ): Writing<Kit, Subject, Given, Flags & Has<Flag>> {
    return this.adding((command) => command.requiredOption(flag, text))
  }

  /** The end of its help. */
  help(text: string): Writing<Kit, Subject, Given, Flags> {
    return this.adding((command) => command.addHelpText('after', `\n${text}`))
  }

  work(act: (subject: Subject, ...given: [...Given, Flags]) => Promise<void> | void): MakeCommand<Kit> {
    return (kit) => {
      const command = new Command(this.#name)
      for (const step of this.#steps) step(command)
      return command.action((...given: readonly unknown[]) => {
        // Commander gives the arguments that the words name, then the flags, then the command.
        const flags = given.at(-2) as Flags
        return this.#begin(kit, flags, (subject) =>
          act(subject, ...(given.slice(0, -1) as [...Given, Flags])),
        )
      })
    }
  }
}

/** Words such as `runs show <id>`: group, name, arguments. */
export function written<Kit, Subject, const Words extends string>(
  words: Words,
  description: string,
  begin: Begin<Kit, Subject>,
): Writing<Kit, Subject, Arguments<Words>, object> {
  const [path = '', ...parameters] = words.split(/ (?=[<[])/)
  const name = path.split(' ').at(-1) ?? ''
  const step: Step = (command) => {
    command.description(description)
    for (const parameter of parameters) command.argument(parameter)
  }
  return new Writing(name, [step], begin)
}

export const commandsWith =
  <Kit>() =>
  <const Words extends string>(words: Words, description: string) =>
    written<Kit, Kit, Words>(words, description, async (kit, _, work) => work(kit))

/** With `hasDefault` the first command is meant where none is named. */
export const commandGroup =
  <Kit>(
    name: string,
    description: string,
    help: string,
    commands: readonly MakeCommand<Kit>[],
    { hasDefault = false } = {},
  ): MakeCommand<Kit> =>
  (kit) => {
    const group = new Command(name).description(description)
    group.addHelpText('after', `\n${help}\n\n${EXIT_HELP}`)
    for (const [index, make] of commands.entries())
      group.addCommand(make(kit), { isDefault: hasDefault && index === 0 })
    return group
  }
