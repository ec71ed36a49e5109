package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"quern/server/keys"
)

// keysCommand edits the keys file of a node, which reads it again by itself.
func keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Add, list, revoke and top up API keys",
		Long: "Edit the file that quern serve takes with --keys-file. It holds the hashes of keys and their\n" +
			"limits, never a key. A running node reads it again within a second.",
		Example: "  quern keys add alice --file keys.yaml --requests-per-minute 60 --balance 1000000\n" +
			"  quern keys topup alice 500000 --file keys.yaml",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return usageError{errors.New("want add, list, revoke or topup")} },
	}
	file := cmd.PersistentFlags().String("file", cmp.Or(os.Getenv("QUERN_KEYS_FILE"), "keys.yaml"), "the keys `file`, by default that of QUERN_KEYS_FILE")
	ledger := cmd.PersistentFlags().String("ledger", "", "the ledger `file`, if it is not beside the keys file")
	cmd.AddCommand(addKeyCommand(file), listKeysCommand(file, ledger), revokeKeyCommand(file), topupKeyCommand(file))
	return cmd
}

// takes wants n arguments.
func takes(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s takes %s", cmd.CommandPath(), what)}
		}
		return nil
	}
}

func addKeyCommand(file *string) *cobra.Command {
	cmd := &cobra.Command{Use: "add NAME", Short: "Make a key and print it, this once", Args: takes(1, "one argument, the name of the key")}
	k, balance, price, stdin := keys.Key{}, int64(0), keys.DefaultPrice, false
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&k.Models, "models", nil, "`names` of the models it may use; none: all")
	f.IntVar(&k.RequestsPerMinute, "requests-per-minute", 0, "0: no limit")
	f.IntVar(&k.TokensPerMinute, "tokens-per-minute", 0, "0: no limit")
	f.IntVar(&k.Concurrency, "concurrency", 0, "requests at once; 0: no limit")
	f.Float64Var(&k.Weight, "weight", 0, "share of a busy node beside other keys; 0: 1, as all others")
	f.Int64Var(&balance, "balance", -1, "`tokens` it may spend in all; -1: no limit")
	f.Float64Var(&price.Input, "price-input", 1, "balance that a token of input costs")
	f.Float64Var(&price.Cached, "price-cached", 1, "the same for input that the prefix cache held")
	f.Float64Var(&price.Output, "price-output", 1, "the same for output")
	f.BoolVar(&stdin, "stdin", false, "read the key from standard input instead of making one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k.Name = args[0]
		if balance >= 0 {
			k.Balance = &keys.Balance{Granted: balance, Price: price}
		}
		key := keys.Generate()
		if stdin {
			raw, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<12))
			if key = strings.TrimSpace(string(raw)); err != nil || len(key) < shortestKey || strings.ContainsAny(key, " \n") {
				return usageError{fmt.Errorf("standard input holds no key: want one word of at least %d characters", shortestKey)}
			}
		}
		k.Hash = keys.HashOf(key)
		if err := keys.Edit(*file, func(list []keys.Key) ([]keys.Key, error) { return append(list, k), nil }); err != nil {
			return err
		}
		if !stdin {
			fmt.Fprintln(cmd.OutOrStdout(), key)
		}
		return nil
	}
	return cmd
}

// shortestKey is the least length of a key that is brought along: its hash is
// safe only as long as the key can't be guessed.
const shortestKey = 20

func revokeKeyCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "Remove a key", Args: takes(1, "one argument, the name of the key"),
		RunE: func(_ *cobra.Command, args []string) error {
			return keys.Edit(*file, func(list []keys.Key) ([]keys.Key, error) {
				i, err := keys.Named(list, args[0])
				if err != nil {
					return nil, err
				}
				return slices.Delete(list, i, i+1), nil
			})
		},
	}
}

func topupKeyCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "topup NAME TOKENS", Short: "Grant a key more tokens", Args: takes(2, "two arguments, the name of the key and a number of tokens"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tokens, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || tokens < 1 {
				return usageError{fmt.Errorf("%q is not a number of tokens", args[1])}
			}
			return keys.Edit(*file, func(list []keys.Key) ([]keys.Key, error) {
				i, err := keys.Named(list, args[0])
				if err != nil {
					return nil, err
				}
				b := list[i].Balance
				if b == nil {
					return nil, fmt.Errorf("key %s has no balance, so it may spend without limit", args[0])
				}
				if tokens > keys.MaxGranted-b.Granted {
					return nil, fmt.Errorf("key %s would be granted more than %d tokens in all", args[0], int64(keys.MaxGranted))
				}
				b.Granted += tokens
				fmt.Fprintf(cmd.OutOrStdout(), "%s is granted %d tokens in all\n", args[0], b.Granted)
				return list, nil
			})
		},
	}
}

func listKeysCommand(file, ledger *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the keys and their limits", Args: takes(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := keys.ReadFile(*file)
			if err != nil {
				return err
			}
			spent, known, err := keys.Spent(cmp.Or(*ledger, keys.LedgerOf(*file)))
			if errors.Is(err, fs.ErrNotExist) {
				known, err = true, nil // nothing has been spent yet
			}
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tID\tMODELS\tREQUESTS/MIN\tTOKENS/MIN\tCONCURRENCY\tWEIGHT\tGRANTED\tSPENT")
			for _, k := range list {
				granted, used := "-", "-"
				if k.Balance != nil {
					granted, used = strconv.FormatInt(k.Balance.Granted, 10), strconv.FormatInt(spent[k.Hash], 10)
					if !known {
						used = "(node runs)"
					}
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%g\t%s\t%s\n", k.Name, k.Hash.Owner(), cmp.Or(strings.Join(k.Models, ","), "all"),
					orDash(k.RequestsPerMinute), orDash(k.TokensPerMinute), orDash(k.Concurrency), cmp.Or(k.Weight, 1), granted, used)
			}
			return w.Flush()
		},
	}
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
