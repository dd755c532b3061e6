/** The query bar: what is asked for as text, with suggestions while it is typed and what is wrong with it underneath. */
import { Button, CloseButton, Combobox, Group, Text, TextInput, useCombobox } from '@mantine/core'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { formatLetterQuery, type LetterQueryProblem } from '../../../src/core/letter-query.ts'
import type { LetterFilter } from '../api/types.ts'
import { useSession } from '../kit/role.tsx'
import { isChosen, QUICK_FILTERS, withQuickFilter } from './quick-filters.ts'
import { applied, suggestionsAt } from './suggest.ts'

export interface QueryBarProps {
  readonly text: string
  readonly filter: LetterFilter
  readonly problems: readonly LetterQueryProblem[]
  readonly ask: (text: string) => void
}

export function QueryBar({ text, filter, problems, ask }: QueryBarProps) {
  return (
    <div>
      <QueryField text={text} problems={problems} ask={ask} />
      <Group gap={6} mt="xs" role="group" aria-label="Quick filters">
        {QUICK_FILTERS.map((quick) => {
          const isOn = problems.length === 0 && isChosen(filter, quick)
          return (
            <Button
              key={quick.title}
              size="compact-sm"
              variant={isOn ? 'filled' : 'default'}
              aria-pressed={isOn}
              onClick={() => ask(formatLetterQuery(withQuickFilter(filter, quick), Date.now()))}
            >
              {quick.title}
            </Button>
          )
        })}
      </Group>
    </div>
  )
}

type QueryFieldProps = Pick<QueryBarProps, 'text' | 'problems' | 'ask'>

function QueryField({ text, problems, ask }: QueryFieldProps) {
  const sources = useSession().navigation.map(({ name }) => name)
  const [typed, setTyped] = useState(text)
  const [caret, setCaret] = useState(text.length)
  const field = useRef<HTMLInputElement>(null)
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() })
  // The address may change without the field: by a quick filter, a link, the way back.
  useEffect(() => setTyped(text), [text])

  const suggestions = suggestionsAt(typed, caret, sources)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    combobox.closeDropdown()
    ask(typed.trim())
  }
  const empty = () => {
    setTyped('')
    field.current?.focus()
  }
  const take = (suggestion: string) => {
    const next = applied(typed, suggestions, suggestion)
    setTyped(next.text)
    setCaret(next.caret)
    combobox.resetSelectedOption()
    requestAnimationFrame(() => field.current?.setSelectionRange(next.caret, next.caret))
    if (!suggestion.endsWith(':')) combobox.closeDropdown()
  }
  return (
    <form onSubmit={submit}>
      <Combobox store={combobox} onOptionSubmit={take} width="max-content" position="bottom-start">
        <Combobox.Target>
          <TextInput
            ref={field}
            aria-label="Query"
            placeholder="status:pending queue:orders age:>2d “connection reset”"
            spellCheck={false}
            autoComplete="off"
            value={typed}
            error={problems.length === 0 ? undefined : <Problems problems={problems} />}
            onChange={({ currentTarget }) => {
              setTyped(currentTarget.value)
              setCaret(currentTarget.selectionStart ?? currentTarget.value.length)
              combobox.resetSelectedOption()
              combobox.openDropdown()
            }}
            onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart ?? 0)}
            onBlur={() => combobox.closeDropdown()}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return
              if (combobox.dropdownOpened) combobox.closeDropdown()
              else event.currentTarget.blur()
            }}
            rightSectionWidth="auto"
            rightSection={
              <Group gap={4} pr={4} wrap="nowrap">
                {typed !== '' && <CloseButton aria-label="Clear the query" onClick={empty} />}
                <Button type="submit" size="compact-sm" variant="light">
                  Find
                </Button>
              </Group>
            }
          />
        </Combobox.Target>
        <Combobox.Dropdown hidden={suggestions.all.length === 0}>
          <Combobox.Options aria-label="Suggestions">
            {suggestions.all.map(({ text: option, means }) => (
              <Combobox.Option key={option} value={option}>
                <Group gap="md" justify="space-between">
                  <code>{option}</code>
                  <Text size="sm" c="var(--quiet)">
                    {means}
                  </Text>
                </Group>
              </Combobox.Option>
            ))}
          </Combobox.Options>
        </Combobox.Dropdown>
      </Combobox>
    </form>
  )
}

function Problems({ problems }: { readonly problems: readonly LetterQueryProblem[] }) {
  return (
    <span role="alert">
      {problems.map(({ given, start, message }) => (
        <span key={start} className="problem">
          <code>{given}</code>: {message}
        </span>
      ))}
    </span>
  )
}
