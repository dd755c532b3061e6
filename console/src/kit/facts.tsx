/** Facts about one thing: what each is called, and what it is. One without a value is left out. */
import './facts.css'
import type { ReactNode } from 'react'

export type FactList = Readonly<Record<string, ReactNode>>

/** The facts of a list, and those given as children. */
export function Facts({ of = {}, children }: { readonly of?: FactList; readonly children?: ReactNode }) {
  return (
    <dl className="facts">
      {Object.entries(of).map(([name, value]) => (
        <Fact key={name} name={name}>
          {value}
        </Fact>
      ))}
      {children}
    </dl>
  )
}

export function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  if (children === null || children === undefined || children === '') return null
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
